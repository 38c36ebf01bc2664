import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Policy, plainCapabilities, type SampleRequest } from '../src/base/core/policy.ts'
import { sampled } from '../src/base/core/segment.ts'

/** How a counting policy behaves. */
export interface CountingOptions {
  /** Tokens it would say to a request. */
  readonly length: (request: SampleRequest) => number
  /**
   * Turns of the event loop that it takes; Infinity means that it never answers. Turns and not
   * milliseconds, so that the order of events is the same on a busy machine. @default 0
   */
  readonly delay?: (request: SampleRequest) => number
  /** The id that ends its turns. */
  readonly end: number
  /** The version of its weights. @default 0 */
  readonly version?: (request: SampleRequest) => number
}

/** A policy that counts its requests. It answers with arbitrary tokens and the end of the turn, or with one token if aborted. */
export function openCountingPolicy(options: CountingOptions) {
  const counts = { sampled: 0, prompted: 0, requests: 0, running: 0, most: 0 }
  const policy: Policy = {
    name: 'counting',
    capabilities: { ...plainCapabilities, abort: true, seed: true, version: true },
    async sample(request, { signal }) {
      signal.throwIfAborted()
      counts.requests++
      counts.running++
      counts.most = Math.max(counts.most, counts.running)
      const isWhole = await pause(options.delay?.(request) ?? 0, signal)
      counts.running--
      const whole = options.length(request)
      const count = Math.min(isWhole ? whole : 1, request.maxTokens)
      const ids = Int32Array.from({ length: count }, (_, at) => 65 + ((at + request.seed) % 26))
      if (count === whole) ids[count - 1] = options.end
      counts.sampled += count
      counts.prompted += request.prompt.ids.length
      const version = options.version?.(request) ?? 0
      return {
        kind: 'tokens',
        segment: sampled({
          ids,
          logprobs: Float32Array.from(ids, id => -((id % 7) + 1) / 8),
          version: { from: version, to: version },
        }),
        finish: { kind: !isWhole ? 'abort' : count < whole ? 'length' : 'stop' },
        usage: { prompt: request.prompt.ids.length, sampled: count, seconds: 0 },
      }
    },
    // Without it a policy does not count as a server.
    describe: async () => ({ model: 'counting' }),
    async [Symbol.asyncDispose]() {},
  }
  return { policy, counts }
}

/** Waits so many turns of the event loop; says whether nothing aborted it. */
async function pause(turns: number, signal: AbortSignal): Promise<boolean> {
  if (turns === Number.POSITIVE_INFINITY) {
    return await new Promise(resolve => {
      signal.addEventListener('abort', () => resolve(false), { once: true })
    })
  }
  for (let turn = 0; turn < turns && !signal.aborted; turn++) await nextTurn()
  return !signal.aborted
}
