/**
 * Which addresses a delivery may connect to: those of the public internet. Everything that is somebody's own (loopback, private
 * networks, link-local addresses with the metadata services of clouds among them) or nobody's (documentation, multicast, reserved) is
 * refused, also when it is written as an IPv6 address that leads to it.
 */

import { BlockList, isIPv4, isIPv6 } from "node:net";

const notPublic4 = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const) {
  notPublic4.addSubnet(network, bits, "ipv4");
}

/** Of the global unicast addresses, 2000::/3, those that are none after all. */
const notPublic6 = new BlockList();
for (const [network, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const) {
  notPublic6.addSubnet(network, bits, "ipv6");
}

/** Whether this is the address of a machine of the public internet. What cannot be read is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !notPublic4.check(address, "ipv4");
  if (!isIPv6(address) || address.includes("%")) return false;
  const groups = groupsOf(address);
  const isUnder = (...prefix: number[]): boolean => prefix.every((group, index) => groups[index] === group);
  // Mapped IPv4 addresses, and those that a NAT64 translates, are what they lead to.
  if (isUnder(0, 0, 0, 0, 0, 0xffff) || isUnder(0x64, 0xff9b, 0, 0, 0, 0)) {
    return isPublicAddress(embedded(groups[6]!, groups[7]!));
  }
  return (groups[0]! & 0xe000) === 0x2000 && !notPublic6.check(address, "ipv6");
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

function embedded(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}
