from tests.unit.runner.measuring import bench as bench
