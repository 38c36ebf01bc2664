import { isIP, isIPv4 } from 'node:net'
import { hostname } from 'node:os'

/** Whether an address can be reached from this machine alone. */
export function isLoopback(host: string): boolean {
  const name = bareHost(host)
  if (isIPv4(name)) return name.startsWith('127.')
  return name === 'localhost' || name === '::1' || name.startsWith('::ffff:127.')
}

/** The name in a Host header, without its port; undefined if the header is malformed. */
export function hostNameOf(header: string | undefined): string | undefined {
  const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(header ?? '')
  return match?.[1] === undefined ? undefined : bareHost(match[1])
}

/**
 * Whether a request that names this host may be answered. A page whose name was pointed at this
 * machine (DNS rebinding) sends its own name here, so only names that nobody else can own pass:
 * loopback's, and if the door listens beyond it, plain addresses and this machine's own name.
 */
export function isOwnHost(
  name: string,
  { host, allowedHosts }: { readonly host: string; readonly allowedHosts: readonly string[] },
): boolean {
  if (name === bareHost(host) || allowedHosts.some(each => bareHost(each) === name)) return true
  if (isLoopback(name)) return true
  return !isLoopback(host) && (isIP(name) !== 0 || name === hostname().toLowerCase())
}

/** A host without the brackets of IPv6, in small letters. */
export function bareHost(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
}
