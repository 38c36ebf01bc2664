import { type Content, type Message, type Reply, textOf } from '@espalier/text'
import type { OpenCall, StepCall, Transition, World } from '../../base/core/environment.ts'
import { across, Failure } from '../../base/core/failure.ts'
import type { NonEmpty } from '../../base/core/ids.ts'
import { changeAnswer } from '../../base/core/image.ts'
import { nearest } from '../../base/core/names/nearest.ts'
import { type CleanUp, makeCleanUp } from './clean-up.ts'
import type { Respond, WorldBehaviour } from './opened-world.ts'
import { toJson } from './tools/json.ts'
import { type RunCalls, readTools } from './tools/run-calls.ts'

/** What a world is made from, and its progress. */
export interface WorldState extends Omit<OpenCall, 'seed' | 'replay' | 'signal'> {
  readonly name: string
  readonly calls?: 'one' | 'many'
  readonly nudge?: { readonly text: string; readonly misses: number }
  readonly opening: NonEmpty<Message>
  readonly cleanUp: CleanUp
  /** Turns without a call, in a row, if they are misses. */
  readonly misses: number
  readonly isOver: boolean
}

/** Makes a world from its behaviour: reads its tools and adds the usual handling of steps. */
export async function toWorld<Report>(
  behaviour: WorldBehaviour<Report>,
  from: WorldState,
): Promise<World> {
  const { name, lanes, clock, calls, nudge, opening, cleanUp, keepImage } = from
  if (behaviour.respond && nudge) {
    throw new TypeError(
      `A turn without a call in "${name}" is both a reply (respond) and a miss (nudge).`,
    )
  }
  const surroundings = { scope: name, lanes, calls: calls ?? 'many', ...(clock && { clock }) }
  const { definitions, runCalls } = await readTools(behaviour.tools ?? {}, surroundings)
  let { misses, isOver } = from
  const { report, fork } = behaviour
  return {
    opening,
    tools: definitions,
    async step(action, call) {
      if (isOver) throw new Failure('environment', { cause: steppedTooFar(name) })
      const anchor = atOnce('anchor', 'a text', behaviour.anchor?.())
      const answer = behaviour.step
        ? await behaviour.step(action, { ...call, runCalls })
        : await takeUsualCourse(behaviour, action, { call, runCalls, misses, nudge })
      const transition = judged(behaviour, answer, { action, turn: call.turn, anchor })
      isOver = transition?.kind === 'end'
      misses = action.calls.length > 0 ? 0 : misses + 1
      if (!keepImage || !(holdsParts(transition?.observed) || holdsParts(transition?.calls)))
        return transition
      return await changeAnswer(transition, keepImage)
    },
    ...(report && { report: async () => toJson(await report.call(behaviour)) }),
    ...(fork && {
      fork: call => forkNatively(behaviour, call, { ...from, misses, isOver }),
    }),
    [Symbol.asyncDispose]: () => cleanUp.run(),
  }
}

const methods = ['isOver', 'report', 'anchor', 'stepReward', 'fork', 'step', 'dispose', 'respond']

/**
 * Throws if what opened, or a fork, is no world. Other members are its own affair, as methods may
 * keep state beside them; a function whose name is nearly that of a method would never be called.
 */
export function checkBehaviour<Report>(name: string, behaviour: WorldBehaviour<Report>): void {
  if (typeof behaviour !== 'object' || behaviour === null) {
    throw new TypeError(`A world of "${name}" is ${String(behaviour)}; it is an object.`)
  }
  if (Array.isArray(behaviour.tools)) {
    throw new TypeError(
      `The tools of a world of "${name}" are a list; they are an object, by name.`,
    )
  }
  for (const [key, value] of Object.entries(behaviour)) {
    if (typeof value !== 'function' || methods.includes(key)) continue
    const meant = nearest(key, methods)
    if (meant === undefined || meant in behaviour) continue
    throw new TypeError(`A world of "${name}" has no method "${key}". Did you mean "${meant}"?`)
  }
}

/** Whether any of these has content in parts; they are not checked yet. */
export function holdsParts(list: readonly { readonly content?: unknown }[] | undefined): boolean {
  return Array.isArray(list) && list.some(each => Array.isArray(each?.content))
}

/** Whether a list has an entry. */
export function isNonEmpty<T>(list: readonly T[]): list is NonEmpty<T> {
  return list.length > 0
}

function steppedTooFar(name: string): Error {
  return new Error(`A world of "${name}" was stepped after it had ended.`)
}

async function forkNatively<Report>(
  behaviour: WorldBehaviour<Report>,
  { signal }: { readonly signal: AbortSignal },
  from: WorldState,
): Promise<World> {
  const cleanUp = makeCleanUp()
  try {
    const forked = await behaviour.fork!({ signal, defer: cleanUp.defer })
    checkBehaviour(from.name, forked)
    if (forked.dispose) cleanUp.defer(() => forked.dispose?.())
    return await toWorld(forked, { ...from, cleanUp })
  } catch (cause) {
    return await cleanUp.runAfter(cause)
  }
}

interface Stepping {
  readonly call: StepCall
  readonly runCalls: RunCalls
  readonly misses: number
  readonly nudge: WorldState['nudge']
}

/** A transition with what the world says of the step: where it was taken, and what it was worth. */
function judged<Report>(
  behaviour: WorldBehaviour<Report>,
  transition: Transition,
  step: { readonly action: Reply; readonly turn: number; readonly anchor: string | undefined },
): Transition {
  const { action, turn, anchor } = step
  const reward = behaviour.stepReward?.({ action, calls: transition?.calls ?? [], turn })
  if (anchor === undefined && reward === undefined) return transition
  return {
    ...transition,
    ...(anchor !== undefined && { anchor }),
    ...(reward !== undefined && { reward }),
  }
}

async function takeUsualCourse<Report>(
  behaviour: WorldBehaviour<Report>,
  action: Reply,
  { call, runCalls, misses, nudge }: Stepping,
): Promise<Transition> {
  if (action.calls.length > 0) {
    const { observed, records } = await runCalls(action.calls, call)
    return next(behaviour, observed, { calls: records })
  }
  if (behaviour.respond) {
    const said = await hearUser(behaviour.respond, textOf(action.message.content), call)
    return next(behaviour, said === undefined ? [] : [{ role: 'user', content: said }], {})
  }
  if (!nudge) return { kind: 'end' }
  if (misses + 1 >= nudge.misses) return { kind: 'end', limit: 'misses' }
  return next(behaviour, [{ role: 'user', content: nudge.text }], {})
}

function next<Report>(
  behaviour: WorldBehaviour<Report>,
  observed: readonly Message[],
  rest: Pick<Transition, 'calls'>,
): Transition {
  const isOver = isNonEmpty(observed) && atOnce('isOver', 'true or false', behaviour.isOver?.())
  if (isNonEmpty(observed) && !isOver) return { kind: 'continue', observed, ...rest }
  return { kind: 'end', ...(observed.length > 0 && { observed }), ...rest }
}

/** A promise would be as good as `true`, and the same state every time; code without types may give one. */
function atOnce<Given>(method: string, what: string, given: Given): Given {
  if (typeof given !== 'object' || given === null) return given
  const kind = given instanceof Promise ? 'a promise' : 'an object'
  throw new TypeError(`${method}() of a world gave ${kind}; it gives ${what}, at once.`)
}

async function hearUser(
  user: NonNullable<WorldBehaviour<unknown>['respond']>,
  text: string,
  call: StepCall,
): Promise<Content | undefined> {
  const respond: Respond = typeof user === 'function' ? user : user.respond
  if (typeof user === 'function' || !call.replay) {
    return await across('user', call, () => respond(text, call))
  }
  const said = call.replay.observed?.findLast(message => message.role === 'user')
  user.recall?.(text, said && textOf(said.content))
  return said?.content ?? undefined
}
