// Writes the tasks of OpenEnv's maze: the cells to begin in. A quarter of them is held out.
import { writeFileSync } from 'node:fs'

// The maze as its package has it: a cell is a column and a row, `#` is a wall, the exit is the last.
const maze = [
  '.....#..',
  '##.#.#.#',
  '...#...#',
  '.#####..',
  '......#.',
  '#.###...',
  '....#.#.',
  '.##.....',
]
const cells = maze.flatMap((line, row) =>
  [...line].flatMap((mark, column) => (mark === '.' ? [[column, row]] : [])),
)
const tasks = cells
  .filter(([column, row]) => column + row < 14)
  .map(([column, row]) => ({
    id: `${column}-${row}`,
    isHeldOut: (column + 2 * row) % 4 === 0,
    line: JSON.stringify({ id: `${column}-${row}`, reset: { start_cell: [column, row] } }),
  }))
const write = (name, isHeldOut) => {
  const lines = tasks.filter(task => task.isHeldOut === isHeldOut).map(({ line }) => line)
  writeFileSync(new URL(name, import.meta.url), `${lines.join('\n')}\n`)
}
write('maze.jsonl', false)
write('maze-held-out.jsonl', true)
