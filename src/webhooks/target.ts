import { lookup, Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isPublicAddress } from './address.ts'

/** The addresses behind a name. For tests, and for a resolver of your own. */
export type ResolveName = (hostname: string) => Promise<readonly string[]>

export interface TargetRules {
  /** For development alone: also private addresses, any port, and http. */
  readonly allowPrivate: boolean
  readonly resolve: ResolveName
}

/** What the operating system knows, names of this host and its network included: for development. */
export const askSystem: ResolveName = async (hostname) => {
  const found = await lookup(hostname, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/**
 * What DNS answers, and nothing else. Not the operating system's own call: that holds one of four threads which the whole process shares, so
 * that a few names whose servers are silent would keep all others waiting.
 */
export function askDns(servers?: readonly string[]): ResolveName {
  const resolver = new Resolver({ timeout: LIMITS.webhookDnsTimeoutMs, tries: LIMITS.webhookDnsTries })
  if (servers !== undefined) resolver.setServers(servers)
  return async (hostname) => {
    const name = hostname.replace(/\.$/, '')
    const found = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = found.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length === 0 && found[0].status === 'rejected') throw found[0].reason
    return addresses
  }
}

/**
 * One sentence for a name that is not there, for one that cannot be resolved now and for an address that is not public: what differs
 * would tell the owner of an endpoint about a network that is not theirs.
 */
const NOT_PUBLIC = 'Webhooks are sent to public addresses alone. This one is none, or cannot be found.'

/** Names that never mean a host of another party. What they resolve to is refused too; this says so at once. */
const OWN_NAMES = /(?:^|\.)(?:localhost|local|internal|home\.arpa|lan|intranet|corp|private)$/

/** The address of an endpoint as its owner gave it, judged by its letters: what its name resolves to is judged at every delivery. */
export function checkUrl(given: unknown, { allowPrivate }: Pick<TargetRules, 'allowPrivate'>): URL {
  if (typeof given !== 'string' || given.length > LIMITS.webhookUrlLengthMax) {
    refuse(`It must be text of at most ${LIMITS.webhookUrlLengthMax} characters.`)
  }
  // What the parser would silently take out is not what the caller meant.
  if (/[^!-[\]-~\u00a1-\uffff]/.test(given)) refuse('It holds spaces, control characters or backslashes.')
  if (!URL.canParse(given)) refuse('It is no URL.')
  const url = new URL(given)
  // As it is kept, and judged again at every delivery: letters beyond ASCII are written with up to nine others.
  if (url.href.length > LIMITS.webhookUrlLengthMax) {
    refuse(`It is longer than ${LIMITS.webhookUrlLengthMax} characters when it is written in ASCII.`)
  }
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    refuse('It must begin with https.')
  if (url.username !== '' || url.password !== '') refuse('It must not hold a user or a password.')
  if (url.hash !== '') refuse('It must not hold a fragment.')
  if (url.port === '0') refuse('Port 0 is none.')
  // An empty fragment and an empty query name the same receiver as no fragment and no query: one spelling, so that it is one endpoint.
  url.hash = ''
  if (url.search === '') url.search = ''
  if (allowPrivate) return url
  const port = url.port === '' ? 443 : Number(url.port)
  if (port < 1_024 && port !== 443 && port !== 80) refuse(`Port ${port} is that of another service.`)
  const host = hostOf(url)
  if (isIP(host) === 0) {
    const name = host.replace(/\.$/, '')
    if (!name.includes('.') || OWN_NAMES.test(name)) refuse(NOT_PUBLIC)
  } else if (!isPublicAddress(host)) refuse(NOT_PUBLIC)
  return url
}

/**
 * The addresses to connect to, and no others: the socket asks no resolver again, so that a name cannot mean one thing when
 * it is judged and another one when it is used. One address that is refused refuses all of them.
 */
export async function resolveTarget(url: URL, rules: TargetRules): Promise<readonly string[]> {
  const host = hostOf(url)
  const addresses = isIP(host) === 0 ? await resolveName(host, rules) : [host]
  const wrong =
    addresses.length === 0 ||
    addresses.some((address) => isIP(address) === 0 || !(rules.allowPrivate || isPublicAddress(address)))
  if (wrong) refuse(NOT_PUBLIC)
  return addresses
}

/** In development the reason helps. Elsewhere it would tell which names our own servers of names know. */
async function resolveName(host: string, { allowPrivate, resolve }: TargetRules): Promise<readonly string[]> {
  try {
    return await resolve(host)
  } catch (error) {
    if (allowPrivate) throw error
    return refuse(NOT_PUBLIC)
  }
}

/** A lookup for sockets that knows these addresses and asks no resolver. */
export function pinnedLookup(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, all)
    else callback(null, all[0]!.address, all[0]!.family)
  }
}

/** Without the brackets of IPv6. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '')
}

function refuse(detail: string): never {
  throw new OnlyonceError('webhook_url_refused', { detail })
}
