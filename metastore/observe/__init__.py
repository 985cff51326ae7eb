"""What the daemon tells about itself: log lines, and figures, which prometheus_client counts and writes."""

import os

# They are of other programs in the same environment, whose processes count together in files there.
for _name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
    os.environ.pop(_name, None)
