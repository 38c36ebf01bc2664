import type { Message } from '@espalier/text'
import type { Condensed } from '../../../base/core/condenser.ts'
import { across, acrossNow, Failure } from '../../../base/core/failure.ts'
import { rewrite, showInstead } from '../act.ts'
import { note, openingShown, show, type Walk } from '../walk.ts'
import type { CondensingState } from './state.ts'
import { selfSpeaker } from './summarise.ts'

/** After condensing did not help, the context grows by this share, or fills up, before it is tried again. */
const patience = 1.1

/**
 * Condenses what a walk is shown when it takes more than its share of the context, at most once
 * before each turn. A result that is not shorter is not used: if the context does not fit, the next
 * sample ends the attempt by `context`.
 */
export async function condenseWalk(walk: Walk): Promise<void> {
  const { condensing } = walk
  if (!condensing) return
  const turn = walk.turns.length
  if (condensing.looked?.turn !== turn) {
    condensing.looked = { turn, done: condenseOnce(walk, condensing) }
  }
  await condensing.looked.done
}

async function condenseOnce(walk: Walk, condensing: CondensingState): Promise<void> {
  const { limits, condense } = walk.context
  const before = walk.tokens.length
  // In a turn that another path began, the context before it must not change.
  if (!condense || walk.next.begun !== undefined) return
  if (before <= Math.max(limits.context * condense.above, condensing.from)) return
  const condensed = await askCondenser(walk, condensing)
  if (condensed.kind === 'unchanged') {
    giveUp(walk, condensing, {
      ...condensed,
      problem: condensed.problem ?? 'nothing could be condensed',
    })
    return
  }
  const after = countIn(walk, condensed.messages)
  if (after >= before) {
    const problem = `${condensed.reason}: ${after} tokens instead of ${before}`
    giveUp(walk, condensing, { ...condensed, problem })
    return
  }
  noteCondensed(walk, condensed, { before, after })
  condensing.from = 0
  const { reason } = condensed
  showInstead(walk, condensed.messages, { by: 'condenser', reason })
}

/** The walk goes on with its old context; a summary that the policy wrote in vain is still trained. */
function giveUp(
  walk: Walk,
  condensing: CondensingState,
  { figures, problem }: Pick<Condensed, 'figures'> & { readonly problem: string },
): void {
  const before = walk.tokens.length
  note(walk, 'condense-failed', { detail: problem, figures: { ...figures, before } })
  condensing.from = Math.min(before * patience, walk.context.limits.context - 1)
  if (!condensing.summaryEnd) return
  const keep = before - 1
  const ids = walk.tokens.view(keep).slice()
  rewrite(walk, { kind: 'rewrites', keep, ids, reason: `not condensed: ${problem}` }, 'condenser')
}

/** Condenses an opening before anything is sampled; what it was before stays in the conversation. */
export async function condenseOpening(walk: Walk): Promise<void> {
  const { condense } = walk.context
  if (!walk.condensing || !condense?.condenser.condensesOpenings) return
  const condensed = await askCondenser(walk, walk.condensing)
  if (condensed.kind === 'unchanged') {
    const { problem, reason, figures = {} } = condensed
    if (problem) note(walk, 'condense-failed', { detail: problem, figures })
    else if (reason) note(walk, 'nothing-condensed', { detail: reason, figures })
    return
  }
  const before = countIn(walk, walk.shown)
  const after = countIn(walk, condensed.messages)
  if (after >= before) {
    note(walk, 'condense-failed', `${condensed.reason}: ${after} tokens instead of ${before}`)
    return
  }
  noteCondensed(walk, condensed, { before, after })
  const shown = condensed.messages
  show(walk, shown, 'condenser')
}

function noteCondensed(
  walk: Walk,
  { reason, figures }: Extract<Condensed, { kind: 'rewritten' }>,
  tokens: { readonly before: number; readonly after: number },
): void {
  const detail = `${tokens.before} tokens to ${tokens.after}: ${reason}`
  note(walk, 'condensed', { detail, figures: { ...figures, ...tokens } })
}

async function askCondenser(walk: Walk, { by }: CondensingState): Promise<Condensed> {
  const { limits, condense, lanes } = walk.context
  const { attempt, shown } = walk
  const { to, trainSummaries, condenser } = condense!
  const opening = walk.turns.length === 0 ? shown.length : openingShown(walk).length
  const condensed = await across('condenser', attempt, () =>
    by.condense(shown, {
      signal: attempt.signal,
      tokens: Math.floor(limits.context * to),
      context: limits.context,
      turn: walk.turns.length,
      opening,
      count: messages => walk.context.renderer.render(messages, walk.tree.tools).length,
      lane: lanes.policy,
      self: selfSpeaker(walk, trainSummaries),
    }),
  )
  if (condensed.kind === 'rewritten')
    checkOpening(condenser.name, shown.slice(0, opening), condensed)
  return condensed
}

/** Throws if the condenser changed the number of opening messages, on which later code relies. */
function checkOpening(
  name: string,
  opening: readonly Message[],
  { messages }: Extract<Condensed, { kind: 'rewritten' }>,
): void {
  if (opening.every(({ role }, index) => messages[index]?.role === role)) return
  const roles = [opening, messages].map(list => list.map(({ role }) => role).join(', '))
  const cause = new Error(
    `condenser "${name}" changed the roles of the opening: ${roles[0]} became ${roles[1]}`,
  )
  throw new Failure('condenser', { cause })
}

/** A condensed conversation that the template refuses is the condenser's failure. */
function countIn({ context, tree, attempt }: Walk, messages: readonly Message[]): number {
  return acrossNow('condenser', attempt, () => context.renderer.render(messages, tree.tools).length)
}
