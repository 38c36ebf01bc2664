import { z } from 'zod'
import type { Environment, MakeTasksOptions, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { type Random, random, seedOf } from '../../base/math/random.ts'
import { environment } from '../../engine/environments/environment.ts'
import { Canvas, type Colour } from './canvas.ts'

const cell = z.tuple([z.int().min(0), z.int().min(0)])

const schema = z.object({
  /** Cells in each direction. */
  size: z.int().min(2).max(12),
  start: cell,
  goal: cell,
  walls: z.array(cell),
})

/** Task data of `maze`. */
export type MazeTask = z.output<typeof schema>

type Cell = readonly [column: number, row: number]

const steps: Readonly<Record<string, Cell>> = {
  up: [0, -1],
  down: [0, 1],
  left: [-1, 0],
  right: [1, 0],
}

const rules =
  'You see a board. You are the blue square; go to the green one, and not through the dark ones. ' +
  'Answer with one word at a time: up, down, left or right.'

/** Pixels of a cell: what Qwen's models see as one token. */
const side = 28
const ground: Colour = [236, 236, 236]
const wall: Colour = [60, 60, 60]
const goalColour: Colour = [40, 160, 70]
const own: Colour = [40, 90, 200]

/** A board that is drawn anew after every move; rewarded with 1 for reaching the goal. */
export function maze(): Environment<MazeTask> {
  return environment({
    name: 'maze',
    task: schema,
    open({ data }) {
      let at: Cell = data.start
      const isThere = (): boolean => isSame(at, data.goal)
      return {
        opening: [
          { role: 'system', content: rules },
          { role: 'user', content: [{ type: 'text', text: 'The board:' }, draw(data, at)] },
        ],
        respond(text) {
          const word = /\b(?:up|down|left|right)\b/.exec(text.toLowerCase())?.[0] ?? ''
          const next = moved(data, at, steps[word])
          const said = next ? 'You moved:' : 'You did not move:'
          at = next ?? at
          return isThere() ? undefined : [{ type: 'text', text: said }, draw(data, at)]
        },
        anchor: () => at.join(','),
        report: () => ({ isThere: isThere() }),
      }
    },
    reward: { there: ({ report }) => Number(report.isThere) },
    makeTasks,
    splits: ['train', 'test'],
  })
}

const isSame = (one: Cell, other: Cell): boolean => one[0] === other[0] && one[1] === other[1]

function moved({ size, walls }: MazeTask, at: Cell, step: Cell | undefined): Cell | undefined {
  if (!step) return undefined
  const next: Cell = [at[0] + step[0], at[1] + step[1]]
  const isInside = next.every(place => place >= 0 && place < size)
  return isInside && !walls.some(each => isSame(each, next)) ? next : undefined
}

function draw({ size, walls, goal }: MazeTask, at: Cell) {
  const canvas = new Canvas(size * side, size * side, ground)
  const fill = ([column, row]: Cell, colour: Colour): void =>
    canvas.paint(
      { x: column * side + 1, y: row * side + 1, width: side - 2, height: side - 2 },
      colour,
    )
  for (const each of walls) fill(each, wall)
  fill(goal, goalColour)
  fill(at, own)
  return canvas.toPart()
}

function makeTasks({ count, seed, split = 'train' }: MakeTasksOptions): readonly Task<MazeTask>[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `maze/${split}/${index}` as TaskId,
    data: makeBoard(random(seedOf(seed, 'maze', split, index))),
  }))
}

/** A board on which the goal can be reached: walls stand off one way from the start to it. */
function makeBoard(draw: Random): MazeTask {
  const size = 4
  const any = (): [number, number] => [Math.floor(draw() * size), Math.floor(draw() * size)]
  const start = any()
  let goal = any()
  while (isSame(goal, start)) goal = any()
  const isFree = ([column, row]: Cell): boolean =>
    (row === start[1] && between(column, start[0], goal[0])) ||
    (column === goal[0] && between(row, start[1], goal[1]))
  const walls = Array.from({ length: 4 }, any).filter(each => !isFree(each))
  return { size, start, goal, walls }
}

const between = (place: number, one: number, other: number): boolean =>
  place >= Math.min(one, other) && place <= Math.max(one, other)
