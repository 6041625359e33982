"""What a release ships beside the code: the chart's archive, the software bill of materials, the licences of the
dependencies, and the manifest of the kubectl plugin. Each module is a command; see the Makefile."""
