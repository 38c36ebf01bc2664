import { describe, expect, it } from 'vitest'
import { emptyTree } from '../../../test/random-tree.ts'
import { given, sampled } from '../../base/core/segment.ts'
import { type Place, root } from '../../base/core/tree.ts'
import { sharesOf } from './shares.ts'

const sample = (length: number) =>
  sampled({ ids: new Int32Array(length), logprobs: null, version: { from: 1, to: 1 } })

/** A tree with one sampled turn of ten tokens, and a way to fork it. */
function plant() {
  const tree = emptyTree()
  const turn = tree.append(tree.append(root, given('prompt', Int32Array.of(1))), sample(10))
  return { tree, turn, fork: (at: Place): Place => tree.append(at, sample(4)) }
}

describe('[R2] the shares of endings', () => {
  it('are a third each for a turn and two forks at one of its tokens', () => {
    const { tree, turn, fork } = plant()
    const at = { node: turn.node, offset: 5 }
    const [first, second] = [fork(at), fork(at)]
    expect(sharesOf(tree, [turn, first, second])).toEqual([1 / 3, 1 / 3, 1 / 3])
    expect(sharesOf(tree, [second, turn, first])).toEqual([1 / 3, 1 / 3, 1 / 3])
  })

  it('are halved at each of two forks of one turn, in whatever order they were made', () => {
    const { tree, turn, fork } = plant()
    const late = fork({ node: turn.node, offset: 7 })
    const early = fork({ node: turn.node, offset: 3 })
    expect(sharesOf(tree, [turn, late, early])).toEqual([1 / 4, 1 / 4, 1 / 2])
    expect(sharesOf(tree, [early, turn, late])).toEqual([1 / 2, 1 / 4, 1 / 4])
  })

  it('divide a fork of a fork, and add up to one', () => {
    const { tree, turn, fork } = plant()
    const first = fork({ node: turn.node, offset: 5 })
    const second = fork({ node: turn.node, offset: 5 })
    const nested = fork({ node: first.node, offset: 2 })
    const shares = sharesOf(tree, [nested, turn, second, first])
    expect(shares).toEqual([1 / 6, 1 / 3, 1 / 3, 1 / 6])
  })

  it('count an ending in the middle of a turn as a way of its own', () => {
    const { tree, turn, fork } = plant()
    const middle = { node: turn.node, offset: 5 }
    expect(sharesOf(tree, [turn, middle, fork(middle)])).toEqual([1 / 3, 1 / 3, 1 / 3])
  })
})
