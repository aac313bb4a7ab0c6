from recordsmith.checking.verification.dataset_check import verify as verify
from recordsmith.checking.verification.verify_report import ShardFindings as ShardFindings
from recordsmith.checking.verification.verify_report import VerifyReport as VerifyReport
