import { z } from 'zod'
import { isExactAnswer } from '../../base/core/answer.ts'
import type { Environment, MakeTasksOptions, Task } from '../../base/core/environment.ts'
import type { TaskId } from '../../base/core/ids.ts'
import { random, seedOf, shuffle } from '../../base/math/random.ts'
import { environment } from '../../engine/environments/environment.ts'
import { tool } from '../../engine/environments/tools/tool.ts'
import { Canvas, type Colour } from './canvas.ts'

const colours: Readonly<Record<string, Colour>> = {
  red: [200, 50, 40],
  green: [40, 160, 70],
  blue: [40, 90, 200],
  yellow: [230, 190, 40],
  grey: [120, 120, 120],
}

const schema = z.object({
  /** Bars from left to right: their colours and their heights, from 0 to 100. */
  bars: z
    .array(
      z.object({
        colour: z.enum(Object.keys(colours) as [string, ...string[]]),
        value: z.int().min(0).max(100),
      }),
    )
    .min(2)
    .max(5),
  asked: z.enum(['highest', 'lowest']),
  answer: z.string(),
})

/** Task data of `chart`. */
export type ChartTask = z.output<typeof schema>

const lookSchema = z.object({ colour: z.string() })

/** A bar chart to be read, with a tool that shows one bar by itself; rewarded for the right colour. */
export function chart(): Environment<ChartTask> {
  return environment({
    name: 'chart',
    task: schema,
    open({ data }) {
      const text = `Which bar is the ${data.asked}? Answer with its colour only.`
      const look = tool({
        description: 'Shows one bar of the chart by itself, by its colour.',
        inputSchema: lookSchema,
        execute({ colour }) {
          const bars = data.bars.filter(each => each.colour === colour)
          if (bars.length === 0) throw new Error(`there is no bar of colour ${colour.slice(0, 40)}`)
          return [{ type: 'text', text: `The ${colour} bar:` }, plot(bars)]
        },
      })
      const content = [plot(data.bars), { type: 'text', text } as const]
      return { opening: [{ role: 'user', content }], tools: { look } }
    },
    reward: {
      right: ({ task: { data }, answer }) => Number(isExactAnswer(answer, data)),
    },
    makeTasks,
    splits: ['train', 'test'],
  })
}

const bar = 28
const height = 112

function plot(bars: ChartTask['bars']) {
  const canvas = new Canvas((2 * bars.length + 1) * bar, height + 28, [255, 255, 255])
  canvas.paint({ x: 0, y: height, width: canvas.width, height: 2 }, [0, 0, 0])
  for (const [index, { colour, value }] of bars.entries()) {
    const tall = Math.round((value / 100) * height)
    const box = { x: (2 * index + 1) * bar, y: height - tall, width: bar, height: tall }
    canvas.paint(box, colours[colour]!)
  }
  return canvas.toPart()
}

function makeTasks({ count, seed, split = 'train' }: MakeTasksOptions): readonly Task<ChartTask>[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'chart', split, index))
    const values = shuffle([15, 35, 60, 85], draw)
    const bars = shuffle(Object.keys(colours), draw)
      .slice(0, 4)
      .map((colour, place) => ({ colour, value: values[place]! }))
    const asked = draw() < 0.5 ? 'highest' : 'lowest'
    const wanted = asked === 'highest' ? 85 : 15
    const answer = bars.find(({ value }) => value === wanted)!.colour
    return { id: `chart/${split}/${index}` as TaskId, data: { bars, asked, answer } }
  })
}
