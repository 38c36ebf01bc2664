// A courier on a small map: four places in a ring and two beyond it, up to three roads to the door.
import { environment, tool } from 'espalier'
import { random, seedOf } from 'espalier/math'
import { z } from 'zod'

const map = {
  depot: ['mill', 'park'],
  mill: ['depot', 'school', 'farm'],
  park: ['depot', 'school'],
  school: ['mill', 'park', 'tower'],
  farm: ['mill'],
  tower: ['school'],
} as const
type Place = keyof typeof map
const places = Object.keys(map) as [Place]
const place = z.enum(places)

const task = z.object({ from: place, to: place })
type Parcel = z.infer<typeof task>

export const courier = environment({
  name: 'courier',
  task,
  open({ data }) {
    let at: Place = data.from
    let delivered: Place | undefined
    return {
      opening: [
        { role: 'system', content: 'Bring the parcel to its place.' },
        { role: 'user', content: `You are at ${data.from}. The parcel goes to ${data.to}.` },
      ],
      tools: {
        drive: tool({
          description: 'Drives to a place next to this one',
          inputSchema: z.object({ place }),
          execute({ place }) {
            if (!(map[at] as readonly Place[]).includes(place)) return `no road from ${at}`
            at = place
            return `at ${at}`
          },
        }),
        deliver: tool({
          description: 'Hands the parcel over',
          inputSchema: z.object({}),
          execute() {
            delivered ??= at
            return 'handed over'
          },
        }),
      },
      report: () => ({ delivered: delivered ?? 'nowhere' }),
    }
  },
  reward: { right: ({ task: { data }, report }) => Number(report.delivered === data.to) },
  makeTasks: ({ count, split = 'all' }) =>
    Array.from({ length: count }, (_, index) => {
      const draw = random(seedOf('courier', split, index))
      const from = places[Math.floor(draw() * places.length)]!
      const others = places.filter(each => each !== from)
      const to = others[Math.floor(draw() * others.length)]!
      return { id: `${split}-${index}`, data: { from, to } }
    }),
})

/** Wanders two or three roads and hands over, wherever that is. */
export function show({ task, turn }: { task: { id: string; data: Parcel }; turn: number }) {
  const draw = random(seedOf('shown', task.id))
  let at: Place = task.data.from
  const roads = 1 + Math.floor(draw() * 3)
  if (turn === roads) return { tool: 'deliver' }
  if (turn > roads) return 'done'
  for (let step = 0; ; step++) {
    const exits = map[at] as readonly Place[]
    at = exits[Math.floor(draw() * exits.length)]!
    if (step === turn) return { tool: 'drive', input: { place: at } }
  }
}
