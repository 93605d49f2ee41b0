# Worker image for Dataflow, Flink and Spark: Beam's own image with this package and its kernels.
# Versions are those of constraints.txt; the entry point is Beam's.
FROM apache/beam_python3.11_sdk:2.77.0 AS build
WORKDIR /source
COPY setup.py pyproject.toml MANIFEST.in README.md LICENSE constraints.txt ./
COPY schemas schemas
COPY bertdata bertdata
COPY beam_pipelines beam_pipelines
COPY trainer trainer
# By the variables, what builds the wheel is of a tested version too. pip reads the second one since 26.2.
RUN PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM apache/beam_python3.11_sdk:2.77.0
COPY constraints.txt /tmp/constraints.txt
COPY --from=build /wheels /wheels
# By its file: a name could be found on an index too.
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt "$(ls /wheels/*.whl)[gcp,hdf5]"
# A failed compilation would leave the slow Python engine.
RUN python -c 'from bertdata import _native; assert _native.available(), _native.why_missing'
# What is in the image, as a bill of materials (CycloneDX); the program that writes it is not left in the image.
RUN python -m venv /tmp/tools \
    && /tmp/tools/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt cyclonedx-bom \
    && /tmp/tools/bin/cyclonedx-py environment "$(command -v python)" --output-reproducible \
        --output-file /usr/share/bertdata.cdx.json \
    && rm -rf /tmp/tools
# Workers need no rights of root. Beam's entry point writes to /tmp and to the user's home.
RUN useradd --create-home worker
USER worker
