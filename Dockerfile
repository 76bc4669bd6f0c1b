# The server in a container: packages from npm, as the lockfile in docker/ has them, and the three packages of this
# repository, built. No compiler, no development tool, and no right to write is left in the image.
#   docker build -t pawl .
#   docker run -p 8080:8080 -e DATABASE_URL=postgres://… -e PAWL_TOKENS=… pawl
# Any other command of pawl works, too: docker run -e DATABASE_URL=… pawl migrate
FROM node:22.22-slim AS build
WORKDIR /source
COPY docker/package.json docker/package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.base.json ./
COPY packages/pawl packages/pawl
COPY packages/server packages/server
COPY packages/dashboard packages/dashboard
RUN mkdir node_modules/@pawl && ln -s ../packages/pawl node_modules/pawl && \
    ln -s ../../packages/dashboard node_modules/@pawl/dashboard && \
    node packages/pawl/scripts/generate.js && node_modules/.bin/tsc -b packages/server && node_modules/.bin/vite build packages/dashboard
RUN mkdir -p packed built/pawl built/@pawl/server built/@pawl/dashboard && \
    npm pack --ignore-scripts --pack-destination packed ./packages/pawl ./packages/server ./packages/dashboard && \
    tar -xzf packed/pawl-[0-9]*.tgz --strip-components=1 -C built/pawl && \
    tar -xzf packed/pawl-server-*.tgz --strip-components=1 -C built/@pawl/server && \
    tar -xzf packed/pawl-dashboard-*.tgz --strip-components=1 -C built/@pawl/dashboard

FROM node:22.22-slim
WORKDIR /pawl
COPY docker/package.json docker/package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force
COPY --from=build /source/built node_modules
USER node
# Everybody may reach it here, so it wants PAWL_TOKENS or PAWL_PROXY_AUTH.
ENV NODE_ENV=production PAWL_HOST=0.0.0.0 PAWL_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PAWL_PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/pawl/node_modules/@pawl/server/bin/pawl.js"]
CMD ["server"]
