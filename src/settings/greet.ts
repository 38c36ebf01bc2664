import type { Policy } from '../core/policy.ts'
import { openPolicy, type PolicyOptions } from '../policies/open-policy.ts'
import { ServerError } from '../policies/transport/server-error.ts'

/** How servers are greeted. */
export interface GreetOptions extends Pick<PolicyOptions, 'key' | 'servedModel'> {
  /** The variable that a key would be read from, for the message. */
  readonly keyVariable: string
}

/** What the schemes of servers begin with; others need no greeting. */
const servers = /^(?:sglang|vllm|llama-cpp|openai):/

/** Seconds that a server may take to say what it serves. */
const patience = 10

/**
 * Asks every server what it serves, once and without repeating, so that one that is not up or wants
 * a key is said at once and not after all retries of the first attempts.
 */
export async function greetServers(
  uris: readonly string[],
  { keyVariable, ...options }: GreetOptions,
): Promise<void> {
  await Promise.all(
    uris
      .filter(uri => servers.test(uri))
      .map(async uri => {
        await using policy = await openPolicy(uri, {
          ...options,
          retries: false,
          thread: false,
          deadlineSeconds: patience,
        })
        await greet(policy, uri, keyVariable)
      }),
  )
}

async function greet(policy: Policy, uri: string, keyVariable: string): Promise<void> {
  try {
    await policy.describe?.({ signal: AbortSignal.timeout(patience * 1000) })
  } catch (error) {
    if (!(error instanceof ServerError)) return
    if (isAbsent(error)) {
      throw new ServerError(
        'connection',
        `nothing answers at ${uri}. Is it running? (${error.message})`,
      )
    }
    if (error.status === 401) {
      throw new ServerError(
        'status',
        `${uri} wants a key (401). Set the variable ${keyVariable}, or name another with --key-variable.`,
        { status: 401 },
      )
    }
    // Whatever else it says, rolling will meet it with its retries and say it better.
  }
}

const absent = ['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH', 'EAI_AGAIN']

function isAbsent({ problem, message, cause }: ServerError): boolean {
  const code = (cause as { readonly code?: string } | undefined)?.code ?? ''
  return (
    problem === 'connection' &&
    (absent.includes(code) || absent.some(each => message.includes(each)))
  )
}
