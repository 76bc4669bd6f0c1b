/**
 * Which addresses a delivery may connect to: addresses of the public internet always, private
 * networks and loopback only if the operator lists them (`targets.ts`). Never: link-local
 * addresses, metadata services of clouds and reserved addresses, also when an IPv6 address
 * translates to one.
 */

import { BlockList, isIPv4, isIPv6 } from "node:net";

/** "never": no option allows it. */
export type Reach = "public" | "private" | "never";

type Network = readonly [network: string, bits: number];

const never4 = blocks("ipv4", [
  ["0.0.0.0", 8],
  ["169.254.0.0", 16],
  // Multicast, reserved and broadcast.
  ["224.0.0.0", 3],
  // Metadata services: Azure, Alibaba Cloud, Oracle Cloud.
  ["168.63.129.16", 32],
  ["100.100.100.200", 32],
  ["192.0.0.192", 32],
]);

const private4 = blocks("ipv4", [
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
]);

const never6 = blocks("ipv6", [
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
  // Metadata services: Amazon, Google Cloud, Oracle Cloud.
  ["fd00:ec2::254", 128],
  ["fd20:ce::254", 128],
  ["fd00:c1::a9fe:a9fe", 128],
  // Tunnels and translators to IPv4 addresses: Teredo, 6to4, local NAT64.
  ["2001::", 32],
  ["2002::", 16],
  ["64:ff9b:1::", 48],
]);

/** The only addresses outside 2000::/3 that hosts use. */
const private6 = blocks("ipv6", [
  ["::1", 128],
  ["fc00::", 7],
]);

/** Addresses in 2000::/3 that are not global unicast addresses. */
const notPublic6 = blocks("ipv6", [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["3fff::", 20],
]);

/** Classifies an address. A text that is no address is "never". */
export function reachOf(address: string): Reach {
  if (isIPv4(address)) {
    if (never4.check(address, "ipv4")) return "never";
    return private4.check(address, "ipv4") ? "private" : "public";
  }
  const led = embeddedAddress(address);
  if (led !== undefined) return reachOf(led);
  if (!isIPv6(address) || address.includes("%") || never6.check(address, "ipv6")) return "never";
  if (private6.check(address, "ipv6")) return "private";
  if ((groupsOf(address)[0]! & 0xe000) !== 0x2000) return "never";
  return notPublic6.check(address, "ipv6") ? "private" : "public";
}

/** The IPv4 address inside a mapped or NAT64 IPv6 address. */
export function embeddedAddress(address: string): string | undefined {
  if (!isIPv6(address) || address.includes("%")) return undefined;
  const groups = groupsOf(address);
  const isUnder = (...prefix: number[]): boolean => prefix.every((group, index) => groups[index] === group);
  if (!isUnder(0, 0, 0, 0, 0, 0xffff) && !isUnder(0x64, 0xff9b, 0, 0, 0, 0)) return undefined;
  const [high, low] = groups.slice(6) as [number, number];
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

function blocks(family: "ipv4" | "ipv6", networks: readonly Network[]): BlockList {
  const list = new BlockList();
  for (const [network, bits] of networks) list.addSubnet(network, bits, family);
  return list;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // A URL writes it in one form: hexadecimal groups, the longest run of zeros left out.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = text.split("::");
  const first = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = new Array<string>(tail === undefined ? 0 : 8 - first.length - last.length).fill("0");
  return [...first, ...zeros, ...last].map((group) => Number.parseInt(group, 16));
}
