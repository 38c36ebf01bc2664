import { textOf } from '@espalier/text'
import { describe, expect, it } from 'vitest'
import { type Said, settingsOf, setUp } from '../../../test/long-book.ts'
import { attemptAt, call } from '../../../test/rolling.ts'
import type { Condensing } from '../../base/core/condenser.ts'
import type { Trajectory } from '../../base/core/trajectory.ts'
import { numbersIn, readNumbers } from '../../engine/condensers/blocks.ts'
import { openCondenser } from '../../engine/condensers/registry.ts'
import { rollChain } from '../../engine/rollout/chain.ts'
import { reopenCondensing } from './reopen-condensing.ts'

const needs = { openSpeaker: () => Promise.reject(new Error('nobody here')) }

/** Turns pages, recalls a block now and then, and ends late. */
const looksBack = ({ key, chance }: Said): string => {
  if (key.turn > 13) return 'The end.<|im_end|>'
  return chance < 0.2 ? call('recall', { block: 1 + (key.turn % 4) }) : call('turn_page', {})
}

async function rollRemembered(name: string, context: number, member: number) {
  const { condenser, above, to } = await openCondenser(name, needs)
  const opened: Condensing[] = []
  const watched = {
    ...condenser,
    open: () => {
      opened.push(condenser.open())
      return opened.at(-1)!
    },
  }
  const set = setUp(settingsOf(watched, { above, to }), {
    limits: { context },
    speak: looksBack,
  })
  const opening = `Question: who?\n\n${'The baker of Ardle sold forty loaves to Ida Moor. '.repeat(8)}`
  const attempt = { ...attemptAt(set.world, { pages: 9, opening }), member }
  const tree = await rollChain(set.context, attempt)
  return { ...set, attempt, tree, memory: opened[0]! }
}

/** What each of some blocks is when it is recalled. */
const recalled = (condensing: Condensing, blocks: Iterable<number>): readonly string[] =>
  [...blocks].map(block => condensing.recall!.answer({ block }, []).content)

/** The blocks that the policy was told of before a turn: shown, or listed in a note. */
function toldOf({ views = [] }: Trajectory, turn: number): ReadonlySet<number> {
  const shown = views.filter(view => view.turn <= turn).flatMap(view => view.shown)
  const lists = shown.flatMap(({ content }) => [
    ...textOf(content).matchAll(/can still be given back: ([\d, to]+)\./g),
  ])
  return new Set([...numbersIn(shown), ...lists.flatMap(([, list]) => readNumbers(list!))])
}

/** What is recalled at each turn of some attempts, by the memory that is found again and by the first one. */
async function compare(name: string, tokens: number) {
  const pairs: (readonly [found: string, was: string])[] = []
  for (const member of [0, 1, 2]) {
    const { context, attempt, tree, memory } = await rollRemembered(name, tokens, member)
    const trajectory = tree.trajectories[0]!
    for (const [turn, { from }] of trajectory.turns.entries()) {
      const of = { tree, trajectory, turn, place: tree.nodes[from]!.parent }
      const found = await reopenCondensing(context.condense!, of, attempt)
      const told = toldOf(trajectory, turn)
      const was = recalled(memory.fork(turn), told)
      recalled(found!, told).forEach((text, index) => {
        pairs.push([text, was[index]!])
      })
    }
  }
  expect(pairs.length).toBeGreaterThan(8)
  return pairs
}

describe('a trajectory that is taken up after something was condensed', () => {
  it.each([
    ['keyword', 2000],
    ['keyword', 1500],
    ['keyword:keep=3,minimum=100', 2000],
    ['keyword:openings=false,minimum=100', 2400],
    ['keyword:tool=extract_condensed,minimum=60,size=90,to=0.6', 3000],
  ])('recalls all that the policy was told of: %s in %i tokens', async (name, tokens) => {
    for (const [found, was] of await compare(name, tokens)) expect(found).toBe(was)
  })

  it.each([
    ['keyword:boundary=line,minimum=40,size=60', 1200],
    ['keyword:boundary=line,minimum=40,size=60,above=0.9,to=0.3', 1600],
    ['keyword:tool=extract_condensed,size=80,minimum=30', 1400],
  ])('never recalls another text, even of blocks that were cut: %s in %i', async (name, tokens) => {
    for (const [found, was] of await compare(name, tokens)) {
      if (!found.startsWith('Error: block')) expect(found).toBe(was)
    }
  })
})
