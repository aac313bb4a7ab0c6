from recordsmith.viewing.access import redirecting_file as redirecting_file
from recordsmith.viewing.drawing.batch import draw_batch as draw_batch
from recordsmith.viewing.drawing.report_page import check_html_path as check_html_path
from recordsmith.viewing.drawing.report_page import save_html as save_html
from recordsmith.viewing.drawing.sheet import draw_tiles as draw_tiles
from recordsmith.viewing.drawing.sheet import sheet as sheet
from recordsmith.viewing.server import view as view
