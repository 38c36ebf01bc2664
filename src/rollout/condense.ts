import type { Condensing } from '../core/condenser.ts'
import { across } from '../core/failure.ts'
import type { Message } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import { given, sampled } from '../core/segment.ts'
import type { SpeakCall, Speaker, Speech } from '../core/speaker.ts'
import { root } from '../core/tree.ts'
import { showInstead } from './act.ts'
import { note, seedFor, type Walk } from './walk.ts'

/** When and how far contexts are condensed. */
export interface CondenseOptions {
  /** Share of the context from which on the conversation is condensed. @default 0.75 */
  readonly above: number
  /** Share of the context that the condensed conversation may take. @default 0.5 */
  readonly to: number
  /** Whether the policy's own summaries are trained. @default true */
  readonly trainSummaries: boolean
}

/** The options where nothing else is said. */
export const defaultCondenseOptions: CondenseOptions = {
  above: 0.75,
  to: 0.5,
  trainSummaries: true,
}

/**
 * Condenses what a walk is shown when it takes more than its share of the context. What comes back
 * longer than before, or still too long, is not shown: the next sample then ends by `context`.
 */
export async function condenseWalk(
  walk: Walk,
  condensing: Condensing,
  options: CondenseOptions & { readonly isOpening: boolean },
): Promise<void> {
  const { limits, renderer } = walk.context
  const before = walk.tokens.length
  if (before <= limits.context * options.above) return
  const count = (messages: readonly Message[]): number =>
    renderer.render(messages, walk.tree.tools).length
  const opening = walk.turns[0]?.messages ?? walk.shown.length
  const condensed = await across('condenser', walk.attempt, () =>
    condensing.condense(walk.shown, {
      signal: walk.attempt.signal,
      tokens: Math.floor(limits.context * options.to),
      count,
      self: selfSpeaker(walk, options.trainSummaries),
      opening,
    }),
  )
  if (condensed.kind === 'unchanged') return
  const after = count(condensed.messages)
  if (after >= before) {
    note(walk, 'condense-failed', `condensed to ${after} tokens from ${before}`)
    return
  }
  note(walk, 'condensed', `${before} tokens to ${after}: ${condensed.reason}`)
  await showInstead(walk, condensed.messages, { by: 'condenser', reason: condensed.reason })
}

/** The walk's own policy as a speaker; what it says becomes a path of its own in the tree. */
function selfSpeaker(walk: Walk, isTrained: boolean): Speaker {
  return {
    name: walk.context.policy.name,
    say: (messages, call) => sayOnOwnPath(walk, messages, { ...call, isTrained }),
  }
}

async function sayOnOwnPath(
  walk: Walk,
  messages: readonly Message[],
  call: SpeakCall & { readonly isTrained: boolean },
): Promise<Speech> {
  const { context, attempt, tree } = walk
  const { renderer, policy, limits, lanes, sampling } = context
  const ids = renderer.render(messages, [])
  const room = Math.min(
    call.maxTokens ?? 1024,
    limits.context - ids.length,
    limits.tokens - walk.sampled,
  )
  if (room <= 0) throw new Error(`no room to summarise: the prompt has ${ids.length} tokens`)
  const summaries = walk.events.filter(event => event.kind === 'summary').length
  const branch = `${walk.branch}/summary${summaries}`
  const sample = await lanes.policy.run(call, () =>
    policy.sample(
      {
        prompt: { ids, messages, tools: [] },
        maxTokens: room,
        sampling,
        stopIds: renderer.stopIds,
        stopStrings: [],
        seed: seedFor(attempt, branch),
        key: { task: attempt.task.id, member: attempt.member, branch, turn: walk.turns.length },
        session: `${tree.id}${branch}`,
      },
      call,
    ),
  )
  if (sample.kind === 'text') {
    const said = textOf(sample.message.content)
    return {
      message: sample.message,
      finish: finishOf(sample.finish.kind),
      usage: usageOf(ids, said.length),
    }
  }
  const { segment, finish } = sample
  walk.sampled += segment.ids.length
  walk.prompted += ids.length
  if (call.isTrained) {
    const lineage = {
      kind: 'rewrites',
      of: walk.place,
      by: 'condenser',
      reason: 'the policy summarised',
    } as const
    const asked = tree.append(root, given('observed', ids), lineage)
    walk.place = tree.append(asked, sampled(segment))
  }
  note(walk, 'summary', `${ids.length} tokens read, ${segment.ids.length} sampled`)
  const { message } = renderer.parse(segment.ids, [], 0)
  return { message, finish: finishOf(finish.kind), usage: usageOf(ids, segment.ids.length) }
}

function finishOf(kind: string): Speech['finish'] {
  return kind === 'stop' ? 'stop' : 'length'
}

function usageOf(ids: Int32Array, said: number): Speech['usage'] {
  return { prompt: ids.length, sampled: said }
}
