import { BlockList, isIP } from 'node:net'

/**
 * Addresses without an owner on the public internet, by the registries of special-purpose addresses: this host, private networks,
 * carriers' own, link-local (where clouds keep their metadata), documentation, benchmarks, multicast, the future.
 */
const IPV4_REFUSED = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Looks public: what Azure answers its own machines at, metadata and all.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const

/** Of IPv6 only global unicast is public: loopback, mapped IPv4, NAT64, unique local, link-local and multicast are outside of it. */
const IPV6_PUBLIC = ['2000::', 3] as const

/** Inside of it: protocol assignments with Teredo, documentation, and 6to4, which carries an IPv4 address to go to. */
const IPV6_REFUSED = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

const refused = new BlockList()
for (const [network, prefix] of IPV4_REFUSED) refused.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of IPV6_REFUSED) refused.addSubnet(network, prefix, 'ipv6')
const globalUnicast = new BlockList()
globalUnicast.addSubnet(...IPV6_PUBLIC, 'ipv6')

/**
 * Whether an address is one that strangers may have us connect to. What is no address is not.
 *
 * @example
 * isPublicAddress('169.254.169.254') // false
 */
export function isPublicAddress(address: string): boolean {
  // A zone (fe80::1%eth0) means this host's own links.
  if (address.includes('%')) return false
  const family = isIP(address)
  if (family === 4) return !refused.check(address, 'ipv4')
  return family === 6 && globalUnicast.check(address, 'ipv6') && !refused.check(address, 'ipv6')
}
