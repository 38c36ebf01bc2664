import type { World } from '../../base/core/environment.ts'
import type { Form, SampleKey, SampleRequest, Sampling, Watch } from '../../base/core/policy.ts'
import { isSampled, type SampledSegment } from '../../base/core/segment.ts'
import type { Attempt, RolloutContext } from '../rollout/attempt.ts'
import { type ChangeRequest, type SampledSegments, sampleSegments } from '../rollout/sample-turn.ts'
import { emptyWalk, type Used, type Walk } from '../rollout/walk.ts'
import type { CaptureContext } from './contract.ts'
import type { Prompted } from './turn.ts'

/** What one draw needs besides its prompt. */
export interface DrawOptions {
  readonly context: CaptureContext
  /** The attempt with the request's own signal. */
  readonly attempt: Attempt
  readonly room: number
  readonly sampling: Sampling
  readonly stop: readonly string[]
  /** Candidates per token that the request asks for, beside those of the run. */
  readonly topLogprobs: number
  readonly key: SampleKey
  /** Who asks; '' if nobody is named. */
  readonly seat: string
  /** What the draw's seed is a function of, besides the attempt. */
  readonly seedName: string
  /** The request's own seed, if requests decide how to sample. */
  readonly seed: number | undefined
  /** What the answer has to be, if the policy is held to it. */
  readonly form: Form | undefined
  /** Called with all tokens of the turn whenever there are more. */
  readonly watch: ((ids: Int32Array) => void) | undefined
}

/** What one draw gave and took. */
export interface Drawn {
  readonly segments: readonly SampledSegment[]
  /** Missing if it broke; then `error` says how. */
  readonly sampled: Omit<SampledSegments, 'first'> | undefined
  readonly error: unknown
  readonly usage: Pick<Used, 'prompted' | 'cached' | 'servers'> & {
    readonly isReencoded: boolean
    readonly seconds: number
  }
}

/** Samples one turn behind a prompt; what was sampled before something broke is kept. */
export async function drawTurn(prompted: Prompted, options: DrawOptions): Promise<Drawn> {
  const walk = makeScratch(prompted, options)
  let sampled: SampledSegments | undefined
  let error: unknown
  try {
    sampled = await sampleSegments(walk, options.room, changeFor(prompted, options))
  } catch (cause) {
    error = cause
  }
  const { isReencoded, used } = walk
  const { prompted: prompt, cached, servers, seconds } = used
  return {
    sampled,
    error,
    segments: walk.tree.nodes.map(({ segment }) => segment).filter(isSampled),
    usage: { prompted: prompt, cached, servers, isReencoded, seconds: seconds.policy },
  }
}

/** A walk of one turn that begins with the prompt, in a tree of its own. */
function makeScratch(prompted: Prompted, { context, attempt, seedName }: DrawOptions): Walk {
  const { tokens, images, messages, tools } = prompted
  const world = tools.length === 0 ? nowhere : { ...nowhere, tools }
  const shown = [...messages]
  const given = { world, branch: seedName, tokens, images, shown }
  return emptyWalk(rollingWith(context), attempt, given)
}

const rolling = new WeakMap<CaptureContext, RolloutContext>()

/** The context with a placeholder environment, made once: no world is opened, the agent has its own. */
function rollingWith(context: CaptureContext): RolloutContext {
  const known = rolling.get(context)
  if (known) return known
  const environment = { name: 'agent', readTask: (data: unknown) => data, open: refuse, reward: {} }
  const made: RolloutContext = { ...context, environment }
  rolling.set(context, made)
  return made
}

/** Changes the request of a draw: adds which sample of the attempt it is, and who watches. */
function changeFor({ tokens }: Prompted, options: DrawOptions): ChangeRequest {
  const { context, key, seat, seed, sampling, stop, topLogprobs, form, watch } = options
  const start = tokens.length
  // Keep the same array if nothing is added, so that what is cached by its identity is used again.
  const stopStrings = stop.length === 0 ? context.stopStrings : [...context.stopStrings, ...stop]
  return request => {
    // Node 20 takes 2 µs for every property that a literal adds behind a spread; none is added here.
    const changed: { -readonly [Name in keyof SampleRequest]: SampleRequest[Name] } = { ...request }
    const { making } = request.key
    changed.key = making === undefined ? key : { making, ...key }
    changed.sampling = sampling
    changed.stopStrings = stopStrings
    if (topLogprobs > context.topLogprobs) changed.topLogprobs = topLogprobs
    if (seat !== '') changed.seat = seat
    if (seed !== undefined) changed.seed = seed
    const going = form && goingOn(form, request.prompt.ids.subarray(start), context)
    if (going) changed.form = going
    if (watch) changed.watch = watchBoth(watch, request, start)
    return changed
  }
}

/** A form of which a sample under earlier weights may have made the beginning; servers cannot go on in one. */
function goingOn(
  form: Form,
  before: Int32Array,
  { renderer, policy }: CaptureContext,
): Form | undefined {
  if (before.length === 0) return form
  if (policy.capabilities.forms !== 'any') return undefined
  return { ...form, begun: renderer.decode(before) }
}

/** Shows a sample's tokens to whoever watches, and to its guards. */
function watchBoth(
  watch: (ids: Int32Array) => void,
  { watch: guard, prompt }: SampleRequest,
  start: number,
): Watch {
  // A sample that goes on under new weights begins after the tokens that the turn already has.
  const before = prompt.ids.subarray(start)
  return soFar => {
    watch(joined(before, soFar.ids))
    return guard?.(soFar)
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
