# The server in a container, made of nothing but npm packages:
#   docker build -t pawl .
#   docker run -p 8080:8080 -e DATABASE_URL=postgres://… -e PAWL_TOKENS=… pawl
# Any other command of pawl works, too: docker run -e DATABASE_URL=… pawl migrate
FROM node:22-slim AS build
WORKDIR /source
COPY . .
RUN npm install --ignore-scripts && mkdir /packed && npm pack -w pawl -w @pawl/server --pack-destination /packed

FROM node:22-slim
WORKDIR /pawl
COPY --from=build /packed /packed
RUN npm init -y && npm install --ignore-scripts /packed/*.tgz && rm -r /packed
USER node
# Everybody may reach it here, so it wants PAWL_TOKENS or PAWL_PROXY_AUTH.
ENV NODE_ENV=production PAWL_HOST=0.0.0.0 PAWL_PORT=8080
EXPOSE 8080
ENTRYPOINT ["node", "/pawl/node_modules/@pawl/server/bin/pawl.js"]
CMD ["server"]
