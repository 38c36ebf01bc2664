import type { Tree } from '../../../base/core/tree.ts'
import type { Listen, RunEvent, Together, TreeEnd, Warned } from '../events.ts'
import { heldBySlow, lostShares } from './ahead.ts'
import { noLogprobs, untemperedLogprobs } from './basis.ts'
import { learnedByHeart } from './by-heart.ts'
import { constantObservations, noToolCalls, parserMismatch, throwingTool } from './calls.ts'
import { entropyCollapse, entropyRise, lengthDrift, oneAnswer } from './collapse.ts'
import { nothingCondensed } from './condensing.ts'
import { oddLogprobs } from './logprobs.ts'
import { engineMismatch } from './mismatch.ts'
import { missingOpening, openingTooLong } from './opening.ts'
import { phantomAdvantages } from './phantom.ts'
import { equalRewards, idleTraining, noContrast, noSiblings } from './rewards.ts'
import type { Alarm, Sentinel, SentinelContext } from './sentinel.ts'

/** Every sentinel, fresh for one run; each raises its alarm once. */
function allSentinels(context: SentinelContext): readonly Sentinel[] {
  return [
    noToolCalls(),
    parserMismatch(context),
    constantObservations(),
    throwingTool(),
    equalRewards(),
    noContrast(),
    noSiblings(),
    phantomAdvantages(),
    idleTraining(),
    missingOpening(context),
    openingTooLong(),
    oddLogprobs(context),
    noLogprobs(),
    untemperedLogprobs(context),
    engineMismatch(),
    nothingCondensed(),
    entropyCollapse(),
    entropyRise(),
    lengthDrift(),
    oneAnswer(),
    learnedByHeart(),
    lostShares(),
    heldBySlow(),
  ]
}

/** Lets sentinels listen to a run; their alarms become warnings. */
export function makeSentinels(context: SentinelContext, warn: (warning: Warned) => void): Listen {
  const sentinels = allSentinels(context)
  const raise = (sentinel: string, alarm: Alarm | undefined): void => {
    if (alarm) warn({ kind: 'warning', sentinel, ...alarm })
  }
  const glances = { near: makeGlances(near), far: makeGlances(far) }
  const isSeen = ({ isFar }: Pick<TreeEnd, 'isFar'>): boolean =>
    isFar ? glances.far() : glances.near()
  const seeTree = (tree: Tree): void => {
    for (const each of sentinels) raise(each.name, each.seeTree?.(tree))
  }
  const together = (events: Together): void => {
    if (events.kind !== 'trees-end') return
    for (let index = 0; index < events.count; index++) {
      if (isSeen(events.trees[index]!)) seeTree(events.trees[index]!.tree)
    }
  }
  const listen = (event: RunEvent): void => {
    if (event.kind === 'tree-end') {
      if (!event.isOther && isSeen(event)) seeTree(event.tree)
    } else if (event.kind === 'group-end') {
      for (const each of sentinels) raise(each.name, each.seeGroup?.(event.group))
    } else if (event.kind === 'step-end') {
      for (const each of sentinels) raise(each.name, each.seeStep?.(event.metrics, event.ahead))
    } else if (event.kind === 'curves') {
      for (const each of sentinels) raise(each.name, each.seeCurves?.(event.values))
    }
  }
  return Object.assign(listen, { together })
}

/** So many trees are all checked at first, and later only so many in so many seconds, as a sample. */
interface Glances {
  readonly first: number
  readonly later: number
  readonly seconds: number
}

const near: Glances = { first: 256, later: 64, seconds: 1 }
/** This process stands still while such a tree is fetched. */
const far: Glances = { first: 1, later: 1, seconds: 10 }

/** Whether to check the next tree: if thousands end per second, checking each would slow the run. */
function makeGlances({ first, later, seconds }: Glances): () => boolean {
  let seen = 0
  let since = performance.now()
  return () => {
    const now = performance.now()
    if (seen >= first && now - since > seconds * 1000) {
      seen = first - later
      since = now
    }
    return seen++ < first
  }
}
