# One image for `twiceshy serve`, `twiceshy relay` and `twiceshy migrate`; docs/how-to/run-in-production.md says how to run it.
FROM python:3.12-slim AS build
WORKDIR /build
COPY sdk sdk
COPY guard guard
COPY outbox_relay outbox_relay
COPY migrations migrations
COPY pyproject.toml constraints.txt README.md ./
RUN pip wheel --no-cache-dir --quiet --constraint constraints.txt --wheel-dir wheels ./sdk '.[kafka,nats,rabbitmq,redis]'

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/build/wheels,target=/wheels \
    pip install --no-cache-dir --quiet --no-index --find-links /wheels 'twiceshy-server[kafka,nats,rabbitmq,redis]'
RUN useradd --uid 10001 --create-home --home-dir /data twiceshy
USER 10001
WORKDIR /data
VOLUME /data
ENV TWICESHY_HOST=0.0.0.0
EXPOSE 8700
HEALTHCHECK CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ.get(\"TWICESHY_PORT\", 8700)}/health/live', timeout=2)"]
ENTRYPOINT ["twiceshy"]
CMD ["serve"]
