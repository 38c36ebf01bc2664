import { inflateSync } from 'node:zlib'
import { readImageHeader } from '@espalier/text/images'
import { describe, expect, it } from 'vitest'
import { attemptAt, call, contextOf, openSeeingRenderer, script } from '../../../test/rolling.ts'
import { imagesTo } from '../../base/core/image.ts'
import { rollChain } from '../../engine/rollout/chain.ts'
import { makeMemoryStore } from '../../engine/rollout/images/memory-store.ts'
import { scoreTree } from '../../engine/rollout/score.ts'
import { Canvas } from './canvas.ts'
import { chart } from './chart.ts'
import { maze } from './maze.ts'

const renderer = await openSeeingRenderer()
const images = { store: makeMemoryStore(), max: 8, pixels: 1e6, from: [] }

describe('a canvas', () => {
  it('is a PNG file of exactly its pixels', () => {
    const canvas = new Canvas(3, 2, [1, 2, 3])
    canvas.paint({ x: 2, y: 1, width: 5, height: 5 }, [7, 8, 9])
    const png = canvas.toPng()
    expect(readImageHeader(png)).toMatchObject({ kind: 'png', width: 3, height: 2 })
    const data = png.indexOf('IDAT')
    const body = inflateSync(png.subarray(data + 4, data + 4 + png.readUInt32BE(data - 4)))
    expect([...body]).toEqual([0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3, 7, 8, 9])
    expect(new Canvas(3, 2, [1, 2, 3]).toPng()).toEqual(new Canvas(3, 2, [1, 2, 3]).toPng())
  })
})

describe('worlds that are seen', () => {
  it('maze shows the board after every move, and pays for the goal', async () => {
    const world = maze()
    const board = { size: 3, start: [0, 0], goal: [2, 0], walls: [[0, 1]] }
    const policy = script(
      renderer,
      ['down', 'Right!', 'right'].map(word => `${word}<|im_end|>`),
    )
    const attempt = attemptAt(world, board)
    const tree = await rollChain(
      contextOf({ environment: world, renderer, policy, images }),
      attempt,
    )
    const [trajectory] = tree.trajectories
    const digests = imagesTo(tree, trajectory!.end).map(({ digest }) => digest)
    expect(digests).toHaveLength(3)
    // The wall is in the way, so the second board is the first.
    expect(digests[1]).toBe(digests[0])
    expect(digests[2]).not.toBe(digests[0])
    const context = contextOf({ environment: world, renderer, policy, images })
    const [scored] = await scoreTree(tree, attempt.task, {
      ...context,
      reward: world.reward,
      ...attempt,
    })
    expect(scored).toMatchObject({ reward: { total: 1 } })
  })

  it('maze makes boards whose goal can be reached', () => {
    for (const { data } of maze().makeTasks!({ count: 50, seed: 3 })) {
      const { start, goal, walls } = data
      expect(start).not.toEqual(goal)
      expect(walls).not.toContainEqual(start)
      expect(walls).not.toContainEqual([goal[0], start[1]])
    }
  })

  it('chart answers with a picture when one bar is asked for', async () => {
    const world = chart()
    const [task] = world.makeTasks!({ count: 1, seed: 1 })
    const { colour } = task!.data.bars[0]!
    const answers = [call('look', { colour }), `${task!.data.answer}<|im_end|>`]
    const policy = script(renderer, answers)
    const attempt = attemptAt(world, task!.data)
    const context = contextOf({ environment: world, renderer, policy, images })
    const tree = await rollChain(context, attempt)
    expect(imagesTo(tree, tree.trajectories[0]!.end).map(({ width }) => width)).toEqual([252, 84])
    const [scored] = await scoreTree(tree, attempt.task, {
      ...context,
      reward: world.reward,
      ...attempt,
    })
    expect(scored).toMatchObject({ reward: { total: 1 } })
  })
})
