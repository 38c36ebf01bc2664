import { z } from 'zod'
import { environmentFactory } from '../../engine/environments/factory.ts'
import { chart } from './chart.ts'
import { maze } from './maze.ts'

/** `maze`, opened by name. */
export const mazeFactory = environmentFactory({
  about: 'A board that is seen as a picture after every move; makes its own tasks.',
  options: z.strictObject({}),
  open: maze,
})

/** `chart`, opened by name. */
export const chartFactory = environmentFactory({
  about: 'Bar charts to be read, with a tool that answers with a picture; makes its own tasks.',
  options: z.strictObject({}),
  open: chart,
})
