"""Images with boxes and outlines: COCO, PASCAL VOC, YOLO."""
