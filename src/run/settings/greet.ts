import { once } from 'node:events'
import { connect } from 'node:net'
import type { Policy, PolicyDescription } from '../../base/core/policy.ts'
import type { PolicyOptions } from '../../engine/policies/open-policy.ts'
import { ServerError } from '../../engine/policies/transport/server-error.ts'
import { openPolicy, policyScheme } from './open-policy.ts'

/** How servers are greeted. */
export interface GreetOptions extends Pick<PolicyOptions, 'key' | 'servedModel'> {
  /** The variable that a key would be read from, for the message. */
  readonly keyVariable: string
}

/** Seconds within which something must take a connection, and within which it must say what it serves. */
const patience = { connecting: 2, answering: 10 }

/**
 * Asks every server what it serves, once and without retries, so that a server that is down or needs
 * a key is reported at once, before a tokenizer is looked for and before any attempt is retried. Gives what
 * each of them said, in order; nothing of one that answered with an error.
 */
export async function greetServers(
  uris: readonly string[],
  options: GreetOptions,
): Promise<readonly (PolicyDescription | undefined)[]> {
  return await Promise.all(uris.filter(isServer).map(uri => greetServer(uri, options)))
}

function isServer(uri: string): boolean {
  const { rest, scheme } = policyScheme(uri)
  return (scheme?.leadsTo === 'server' || scheme?.leadsTo === 'session') && /^https?:/.test(rest)
}

async function greetServer(
  uri: string,
  { keyVariable, ...options }: GreetOptions,
): Promise<PolicyDescription | undefined> {
  const { rest, scheme } = policyScheme(uri)
  const url = rest.replace(/#.*$/s, '')
  if (!URL.canParse(url)) return undefined
  // Opening it begins the session, which answers for itself.
  if (scheme?.leadsTo === 'session') {
    await reach(uri, new URL(url))
    return undefined
  }
  // Opened first: what the address says wrongly is wrong whether or not anything answers there.
  await using policy = await openPolicy(uri, {
    ...options,
    retries: false,
    thread: false,
    deadlineSeconds: patience.answering,
  })
  await reach(uri, new URL(url))
  return await greet(policy, uri, keyVariable)
}

/** Whether anything takes a connection at an address. */
async function reach(uri: string, { hostname, port, protocol }: URL): Promise<void> {
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
  })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(patience.connecting * 1000) })
  } catch (cause) {
    const { code, name } = cause as NodeJS.ErrnoException
    const isLate = name === 'AbortError' || name === 'TimeoutError'
    const reason = isLate ? `no connection within ${patience.connecting} s` : (code ?? name)
    throw new ServerError('connection', `nothing answers at ${uri}. Is it running? (${reason})`)
  } finally {
    socket.destroy()
  }
}

async function greet(
  policy: Policy,
  uri: string,
  keyVariable: string,
): Promise<PolicyDescription | undefined> {
  try {
    return await policy.describe?.({ signal: AbortSignal.timeout(patience.answering * 1000) })
  } catch (error) {
    if (error instanceof ServerError && error.status === 401) {
      throw new ServerError(
        'status',
        `${uri} wants a key (401). Set the variable ${keyVariable}, or name another with --key-variable.`,
        { status: 401 },
      )
    }
    // Other errors are left to rolling, which retries and reports them better.
    return undefined
  }
}
