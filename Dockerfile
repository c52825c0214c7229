# The gateway in a container. The default is small and runs servers that are reached by HTTP;
# `--target full` adds uv and Node for servers that are started with uvx and npx.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/pegboard \
 && /opt/pegboard/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
      --constraint constraints.txt ".[postgres]"

FROM python:${PYTHON}-slim AS base
RUN useradd --create-home --uid 10001 pegboard \
 && install --directory --owner=pegboard --group=pegboard /var/lib/pegboard /etc/pegboard
COPY --from=build /opt/pegboard /opt/pegboard
ENV PATH=/opt/pegboard/bin:$PATH \
    PEGBOARD_CONFIG=/etc/pegboard/config.json \
    PEGBOARD_STATE_DIR=/var/lib/pegboard
USER pegboard
WORKDIR /home/pegboard
VOLUME /var/lib/pegboard
EXPOSE 7420
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7420/health', timeout=4)"]
ENTRYPOINT ["pegboard"]
# Whoever comes from outside of the container needs a token, and without any the gateway does not start. To make one,
# in the same volume: docker run --rm -v pegboard:/var/lib/pegboard IMAGE token add laptop
CMD ["serve", "--host", "0.0.0.0"]

FROM base AS full
USER root
COPY --from=node:24-slim /usr/local/bin/node /usr/local/bin/node
COPY --from=node:24-slim /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \
 && ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
 && /opt/pegboard/bin/python -m pip install --no-cache-dir --disable-pip-version-check uv
USER pegboard

FROM base AS slim
