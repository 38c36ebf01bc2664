import type { Transition } from '../core/environment.ts'
import { across } from '../core/failure.ts'
import type { Message, Reply } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Bridge } from '../core/renderer.ts'
import { given } from '../core/segment.ts'
import type { CallRecord } from '../core/tool.ts'
import type { Turn } from '../core/trajectory.ts'
import { placeAt } from '../core/tree.ts'
import { findRepeats } from './repeats.ts'
import { note, stepCall, type Walk } from './walk.ts'

/** Lets the world answer a reply. Gives the outcome where it ended the attempt. */
export async function act(walk: Walk, reply: Reply): Promise<Outcome | undefined> {
  const transition = await step(walk, reply)
  recordStep(walk, transition)
  if (transition.kind === 'end') {
    walk.messages.push(...(transition.observed ?? []))
    return transition.limit ? { kind: 'truncated', limit: transition.limit } : { kind: 'completed' }
  }
  walk.messages.push(...transition.observed)
  await bridge(walk, transition.observed)
  return undefined
}

async function step(walk: Walk, reply: Reply): Promise<Transition> {
  const { clock } = walk.context
  const started = clock()
  const transition = await across('environment', walk.attempt, () =>
    walk.world.step(reply, stepCall(walk)),
  )
  const elapsed = clock() - started
  const tools = Math.min(elapsed, longest(transition.calls ?? []))
  walk.seconds.tools += tools
  walk.seconds.environment += elapsed - tools
  return transition
}

/** Calls of one turn run in parallel, so that the turn waited for the slowest of them. */
function longest(calls: readonly CallRecord[]): number {
  return calls.reduce((most, call) => Math.max(most, call.seconds), 0)
}

function recordStep(walk: Walk, { calls = [], reward, anchor }: Transition): void {
  walk.calls.push(...calls)
  for (const call of calls) {
    if (call.problem) note(walk, `tool:${call.problem}`, call.tool)
    if (call.cut) note(walk, 'tool:output-cut', `${call.tool}: ${call.cut} characters`)
  }
  if (reward === undefined && anchor === undefined) return
  const last = walk.turns.length - 1
  const judged: Turn = {
    ...walk.turns[last]!,
    ...(reward !== undefined && { reward }),
    ...(anchor !== undefined && { anchor }),
  }
  walk.turns[last] = judged
}

/** Appends what lies between two samples, or starts the path that the template rewrites. */
async function bridge(walk: Walk, observed: readonly Message[]): Promise<void> {
  const { renderer } = walk.context
  const turn = walk.turns.at(-1)!
  const turnStart = walk.tree.nodes[turn.from]!.start
  const between = await across('renderer', walk.attempt, () =>
    renderer.bridge({
      path: walk.tokens.view(),
      turnStart,
      messages: walk.messages,
      observed: observed.length,
      tools: walk.tree.tools,
    }),
  )
  if (between.kind === 'rewrites') rewrite(walk, between, 'template')
  else {
    walk.place = walk.tree.append(walk.place, given('observed', between.ids))
    walk.tokens.append(between.ids)
  }
}

/** Starts a new path that keeps the first tokens of the old one and says what it replaces, and why. */
export function rewrite(
  walk: Walk,
  change: Extract<Bridge, { kind: 'rewrites' }>,
  by: string,
): void {
  const { tree, place: old } = walk
  const { keep, ids, reason } = change
  const repeats = findRepeats(tree, { end: old, path: walk.tokens.view(), keep, ids })
  const segment = given('observed', ids, repeats)
  walk.place = tree.append(placeAt(tree, old, keep), segment, {
    kind: 'rewrites',
    of: old,
    by,
    reason,
  })
  walk.tokens = walk.tokens.fork(keep)
  walk.tokens.append(ids)
  walk.forks.push({ at: keep, reason })
  note(walk, `rewrite:${by}`, reason)
}
