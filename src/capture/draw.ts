import type { World } from '../core/environment.ts'
import type { Policy, SampleKey, Sampling, Watch } from '../core/policy.ts'
import { isSampled, type SampledSegment } from '../core/segment.ts'
import type { Attempt } from '../rollout/attempt.ts'
import { type SampledSegments, sampleSegments } from '../rollout/sample-turn.ts'
import type { TokenBuffer } from '../rollout/token-buffer.ts'
import { emptyWalk, type Used, type Walk } from '../rollout/walk.ts'
import type { CaptureContext } from './contract.ts'
import type { Prompted } from './turn.ts'

/** What one draw is told besides its prompt. */
export interface DrawOptions {
  readonly context: CaptureContext
  /** The attempt with the request's own signal. */
  readonly attempt: Attempt
  readonly tokens: TokenBuffer
  readonly room: number
  readonly sampling: Sampling
  readonly stop: readonly string[]
  readonly key: SampleKey
  /** Who asks; '' where nobody is named. */
  readonly seat: string
  /** What the draw's seed is a function of, besides the attempt. */
  readonly seedName: string
  /** The seed that whoever asks named, where they decide how is sampled. */
  readonly seed?: number
  /** Shown all tokens of the turn whenever there are more. */
  readonly watch?: (ids: Int32Array) => void
}

/** What one draw gave and took. */
export interface Drawn {
  readonly segments: readonly SampledSegment[]
  /** Missing where it broke; then `error` says how. */
  readonly sampled?: Omit<SampledSegments, 'first'>
  readonly error?: unknown
  readonly usage: Pick<Used, 'prompted' | 'cached' | 'servers'> & {
    readonly isReencoded: boolean
    readonly seconds: number
  }
}

/** Samples one turn behind a prompt; what was sampled before something broke is kept. */
export async function drawTurn(prompted: Prompted, options: DrawOptions): Promise<Drawn> {
  const walk = openScratch(prompted, options)
  const drawn = async (): Promise<Pick<Drawn, 'sampled' | 'error'>> => {
    try {
      const { finish, text } = await sampleSegments(walk, options.room)
      return { sampled: { finish, text } }
    } catch (error) {
      return { error }
    }
  }
  const result = await drawn()
  const { isReencoded, used } = walk
  const { prompted: prompt, cached, servers, seconds } = used
  return {
    ...result,
    segments: walk.tree.nodes.map(({ segment }) => segment).filter(isSampled),
    usage: { prompted: prompt, cached, servers, isReencoded, seconds: seconds.policy },
  }
}

/** A walk of one turn that begins with the prompt, in a tree of its own. */
function openScratch(prompted: Prompted, options: DrawOptions): Walk {
  const { context, attempt, tokens, sampling, stop, seedName: branch } = options
  const walk = emptyWalk(
    {
      ...context,
      // Nobody opens a world here: the agent has its own.
      environment: { name: 'agent', readTask: data => data, open: refuse, reward: {} },
      policy: withKey(context.policy, options),
      sampling,
      stopStrings: [...context.stopStrings, ...stop],
    },
    attempt,
    { world: { ...nowhere, tools: prompted.tools } },
  )
  return { ...walk, branch, tokens, shown: [...prompted.messages] }
}

/** The same policy, told which sample of its attempt this is and shown to whoever watches. */
function withKey(policy: Policy, { key, seat, seed, watch, tokens }: DrawOptions): Policy {
  const start = tokens.length
  return {
    ...policy,
    sample: (request, call) => {
      const guard = request.watch
      // A sample that goes on under new weights begins behind what the turn has already.
      const before = request.prompt.ids.subarray(start)
      const both: Watch | undefined = watch
        ? soFar => {
            watch(joined(before, soFar.ids))
            return guard?.(soFar)
          }
        : guard
      const asker = seat === '' ? {} : { seat }
      const named = {
        key: { ...request.key, ...key },
        ...asker,
        ...(seed !== undefined && { seed }),
        ...(both && { watch: both }),
      }
      return policy.sample({ ...request, ...named }, call)
    },
  }
}

function joined(before: Int32Array, ids: Int32Array): Int32Array {
  if (before.length === 0) return ids
  const all = new Int32Array(before.length + ids.length)
  all.set(before)
  all.set(ids, before.length)
  return all
}

const refuse = (): Promise<World> => Promise.reject(new Error('an agent opens its own world'))

const nowhere: World = {
  opening: [{ role: 'user', content: '' }],
  tools: [],
  step: () => Promise.reject(new Error('an agent steps its own world')),
  [Symbol.asyncDispose]: () => Promise.resolve(),
}
