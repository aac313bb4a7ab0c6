from recordsmith.checking.comparing.difference import diff as diff
from recordsmith.checking.comparing.features import key_of as key_of
from recordsmith.checking.inspection import Inspection as Inspection
from recordsmith.checking.inspection import inspect as inspect
from recordsmith.checking.linting.lint import lint as lint
from recordsmith.checking.linting.lint import lint_listing as lint_listing
from recordsmith.checking.linting.lint_report import LintExample as LintExample
from recordsmith.checking.linting.lint_report import LintReport as LintReport
from recordsmith.checking.linting.sample_images import boxes_of as boxes_of
from recordsmith.checking.linting.sample_images import image_in as image_in
from recordsmith.checking.normalisation_file import NORMALISATION_NAME as NORMALISATION_NAME
from recordsmith.checking.normalisation_file import Normalisation as Normalisation
from recordsmith.checking.normalisation_file import is_current as is_current
from recordsmith.checking.normalisation_file import normalisation as normalisation
from recordsmith.checking.schema_file import schema as schema
from recordsmith.checking.shard_summaries import PAYLOADS as PAYLOADS
from recordsmith.checking.statistics.class_counts import LabelCounter as LabelCounter
from recordsmith.checking.statistics.sampling import Hashes as Hashes
from recordsmith.checking.statistics.sampling import ValueSample as ValueSample
from recordsmith.checking.statistics.sampling import hash_positions as hash_positions
from recordsmith.checking.statistics.stats_report import stats as stats
from recordsmith.checking.verification.dataset_check import verify as verify
from recordsmith.checking.verification.image_check import (
    check_example_images as check_example_images,
)
from recordsmith.checking.verification.manifest_check import check_labels as check_labels
from recordsmith.checking.verification.verify_report import VerifyReport as VerifyReport
