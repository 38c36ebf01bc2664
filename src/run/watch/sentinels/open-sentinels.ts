import type { Tree } from '../../../base/core/tree.ts'
import type { Listen, RunEvent, Together, Warned } from '../events.ts'
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
  const isSeen = makeGlances()
  const seeTree = (tree: Tree): void => {
    for (const each of sentinels) raise(each.name, each.seeTree?.(tree))
  }
  const together = (events: Together): void => {
    if (events.kind !== 'trees-end') return
    for (let index = 0; index < events.count; index++) {
      if (isSeen()) seeTree(events.trees[index]!.tree)
    }
  }
  const listen = (event: RunEvent): void => {
    if (event.kind === 'tree-end') {
      if (!event.isOther && isSeen()) seeTree(event.tree)
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

/** The first trees are all checked, and later only this many per second, as a sample. */
const [firstTrees, treesPerSecond] = [256, 64]

/** Whether to check the next tree: if thousands end per second, checking each would slow the run. */
function makeGlances(): () => boolean {
  let seen = 0
  let since = performance.now()
  return () => {
    const now = performance.now()
    if (seen >= firstTrees && now - since > 1000) {
      seen = firstTrees - treesPerSecond
      since = now
    }
    return seen++ < firstTrees
  }
}
