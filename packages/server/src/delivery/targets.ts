/**
 * The private addresses that deliveries may go to: the operator's list of networks, addresses and
 * host names. It never allows link-local addresses and metadata services (`addresses.ts`).
 */

import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";
import { InvalidOption } from "pawl";
import { values } from "pawl/engine";
import { embeddedAddress, reachOf } from "./addresses.js";

/** Whether a delivery to this host may connect to this address. */
export type IsAllowed = (host: string, address: string) => boolean;

const form = 'networks such as "10.1.0.0/16", addresses, or host names such as "hooks.internal"';

/** Reads the option `allowPrivateDeliveries`: a list; false: none; true: all private addresses. */
export function checkTargets(given: unknown): IsAllowed {
  if (given === true) return (_host, address) => reachOf(address) !== "never";
  if (given === false) return (_host, address) => reachOf(address) === "public";
  if (!Array.isArray(given)) {
    throw new InvalidOption(
      `allowPrivateDeliveries must be a list of ${form}; or true or false; not ${values.show(given)}`,
    );
  }
  const networks = new BlockList();
  const hosts = new Set<string>();
  for (const entry of given as unknown[]) addEntry(entry, networks, hosts);
  return (host, address) => {
    const reach = reachOf(address);
    if (reach !== "private") return reach === "public";
    return hosts.has(host.toLowerCase()) || isListed(networks, embeddedAddress(address) ?? address);
  };
}

function addEntry(entry: unknown, networks: BlockList, hosts: Set<string>): void {
  const text = typeof entry === "string" ? entry : "";
  const [, address = "", bits] = /^([^/]*)(?:\/(.*))?$/s.exec(text) ?? [];
  const family = isIPv4(address) ? "ipv4" : isIPv6(address) && !address.includes("%") ? "ipv6" : undefined;
  if (family !== undefined) {
    const most = family === "ipv4" ? 32 : 128;
    const length = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
    if (!(length <= most)) throw refused(entry);
    if (length === most && reachOf(address) === "never") {
      throw new InvalidOption(
        `allowPrivateDeliveries lists ${text}: deliveries never go to link-local addresses, metadata services and reserved addresses`,
      );
    }
    networks.addSubnet(address, length, family);
    return;
  }
  if (bits !== undefined || !/^[a-z0-9_]([a-z0-9_.-]{0,252})$/i.test(address) || /^[\d.]+$/.test(address))
    throw refused(entry);
  hosts.add(address.toLowerCase());
}

function isListed(networks: BlockList, address: string): boolean {
  return networks.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

function refused(entry: unknown): InvalidOption {
  return new InvalidOption(`allowPrivateDeliveries must list ${form}, not ${values.show(entry)}`);
}
