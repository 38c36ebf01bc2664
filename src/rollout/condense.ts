import type { Condensed, Condensing } from '../core/condenser.ts'
import { across } from '../core/failure.ts'
import type { Message } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import { given, sampled } from '../core/segment.ts'
import type { SpeakCall, Speaker, Speech } from '../core/speaker.ts'
import { root } from '../core/tree.ts'
import { showInstead } from './act.ts'
import type { CondenseSettings } from './attempt.ts'
import { note, seedFor, type Walk } from './walk.ts'

/**
 * Condenses what a walk is shown when it takes more than its share of the context. What comes back
 * no shorter is not shown: where it does not fit, the next sample ends the attempt by `context`.
 */
export async function condenseWalk(walk: Walk): Promise<void> {
  const { limits, condense } = walk.context
  const before = walk.tokens.length
  if (!walk.condensing || !condense || before <= limits.context * condense.above) return
  const condensed = await askCondenser(walk, walk.condensing, condense)
  if (condensed.kind === 'unchanged') return
  const after = countIn(walk, condensed.messages)
  if (after >= before) {
    note(walk, 'condense-failed', `condensed to ${after} tokens from ${before}`)
    return
  }
  note(walk, 'condensed', `${before} tokens to ${after}: ${condensed.reason}`)
  await showInstead(walk, condensed.messages, { by: 'condenser', reason: condensed.reason })
}

/** Condenses an opening before anything is sampled; what it was before stays in the conversation. */
export async function condenseOpening(walk: Walk): Promise<void> {
  const { condense } = walk.context
  if (!walk.condensing || !condense?.condenser.condensesOpenings) return
  const condensed = await askCondenser(walk, walk.condensing, condense)
  if (condensed.kind === 'unchanged') return
  const [before, after] = [walk.shown, condensed.messages].map(messages => countIn(walk, messages))
  if (after! >= before!) return
  note(walk, 'condensed', `${before} tokens to ${after}: ${condensed.reason}`)
  walk.shown = [...condensed.messages]
  walk.views.push({ turn: 0, shown: condensed.messages, from: walk.messages.length })
}

function askCondenser(
  walk: Walk,
  condensing: Condensing,
  { to, trainSummaries }: CondenseSettings,
): Promise<Condensed> {
  return across('condenser', walk.attempt, () =>
    condensing.condense(walk.shown, {
      signal: walk.attempt.signal,
      tokens: Math.floor(walk.context.limits.context * to),
      count: messages => countIn(walk, messages),
      self: selfSpeaker(walk, trainSummaries),
      opening: walk.turns[0]?.messages ?? walk.shown.length,
    }),
  )
}

function countIn({ context, tree }: Walk, messages: readonly Message[]): number {
  return context.renderer.render(messages, tree.tools).length
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
