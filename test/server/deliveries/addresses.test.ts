/**
 * Which addresses deliveries may connect to. Only the decisions are tested here: nothing may be connected
 * to but loopback, not even if one of them were wrong. That a delivery asks for them is in `deliveries.test.ts`.
 */

import { isIP } from "node:net";
import { createServer } from "@pawl/server";
import { expect, it } from "vitest";
import { reachOf } from "../../../packages/server/dist/delivery/addresses.js";
import { allowedOf } from "../../../packages/server/dist/delivery/post.js";
import { checkTargets } from "../../../packages/server/dist/delivery/targets.js";

it.each([
  "0.0.0.0",
  "10.1.2.3",
  "100.64.0.1",
  "127.0.0.1",
  "127.255.255.254",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.0.0.192",
  "192.0.2.1",
  "192.168.1.1",
  "198.18.0.1",
  "198.51.100.1",
  "203.0.113.9",
  "224.0.0.1",
  "240.0.0.1",
  "255.255.255.255",
  "168.63.129.16",
  "::ffff:168.63.129.16",
  "64:ff9b::a83f:8110",
  "fd20:ce::254",
  "::",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:a9fe:a9fe",
  "::ffff:10.0.0.1",
  "::7f00:1",
  "64:ff9b::7f00:1",
  "64:ff9b::169.254.169.254",
  "64:ff9b:1::1",
  "100::1",
  "2001::1",
  "2001:db8::1",
  "2002:7f00:1::",
  "3fff::1",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "localhost",
  "",
])("%s is not public", (address) => {
  expect(reachOf(address)).not.toBe("public");
});

it.each([
  "1.1.1.1",
  "100.128.0.1",
  "172.15.255.255",
  "172.32.0.1",
  "192.169.0.1",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "64:ff9b::808:808",
  "2606:4700:4700::1111",
  "2a00:1450:4001:800::200e",
])("%s is public", (address) => {
  expect(reachOf(address)).toBe("public");
});

it.each([
  "169.254.169.254",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "fd20:ce::254",
  "fe80::1",
  "fe80::1%eth0",
  "0.0.0.0",
  "::",
  "224.0.0.1",
  "ff02::1",
  "::ffff:169.254.169.254",
  "64:ff9b::169.254.169.254",
  "64:ff9b:1::a9fe:a9fe",
  "2002:a9fe:a9fe::",
  "2001::1",
  "::169.254.169.254",
  "not an address",
])("%s can never be allowed", (address) => {
  expect(reachOf(address)).toBe("never");
});

it.each(["10.0.0.1", "127.0.0.1", "::1", "fd00::1", "192.168.0.1", "100.64.0.1", "::ffff:10.0.0.1"])(
  "%s can be allowed",
  (address) => {
    expect(reachOf(address)).toBe("private");
  },
);

it.each([
  ["yes"],
  [["10.0.0.0/33"]],
  [["10.0.0.0/x"]],
  [["10.0.0.0/8/8"]],
  [["10.0.0.0/"]],
  [["10.0.0"]],
  [["http://hooks.internal"]],
  [["hooks.internal/8"]],
  [[""]],
  [[1]],
  [["169.254.169.254"]],
  [["168.63.129.16/32"]],
])("a list of private targets that is %j is refused", async (allowPrivateDeliveries) => {
  await expect(createServer({ allowPrivateDeliveries } as never)).rejects.toThrow("allowPrivateDeliveries");
});

it.each([
  "169.254.169.254",
  "168.63.129.16",
  "100.100.100.200",
  "fd00:ec2::254",
  "::ffff:169.254.169.254",
  "64:ff9b::a9fe:a9fe",
  "2002:a9fe:a9fe::1",
])("a name that resolves to %s is refused, whatever is allowed", (address) => {
  const found = [{ address, family: isIP(address) }];
  for (const list of [true, false, ["0.0.0.0/0", "::/0", "rebinding.test"]]) {
    expect(() => allowedOf("rebinding.test", found, checkTargets(list))).toThrow("deliveries never go to");
  }
});

it("of several addresses of a name, only those that are allowed are left", () => {
  const found = ["169.254.169.254", "10.0.0.1", "8.8.8.8", "10.1.0.1"].map((address) => ({
    address,
    family: 4,
  }));
  const left = (given: unknown): string[] =>
    allowedOf("a.test", found, checkTargets(given)).map(({ address }) => address);
  expect(left(false)).toEqual(["8.8.8.8"]);
  expect(left(true)).toEqual(["10.0.0.1", "8.8.8.8", "10.1.0.1"]);
  expect(left(["10.1.0.0/16"])).toEqual(["8.8.8.8", "10.1.0.1"]);
  expect(() => allowedOf("a.test", [], checkTargets(true))).toThrow("a.test is nothing");
});
