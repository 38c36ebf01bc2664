// Demonstrations as rows of tokens, for teaching a model on a GPU:
// `npx tsx scripts/gpu/demonstrations.ts MODEL_DIR OUT.bin desk|retail|airline COUNT SEED [TAU_BENCH_ROOT]`.
// The desk is shown by a novice; tau-bench's tools by the actions that each of its tasks names.
// OUT.bin holds, for every row, its length as int32 and then its ids, those to be learned with 2^30 added.
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { createRenderer, readModelFolder } from '@espalier/text/chat'
import { toJavaScript } from '@espalier/text/python'
import type { Environment } from '../../src/base/core/environment.ts'
import { makeLanes } from '../../src/base/core/lane.ts'
import { random, seedOf, shuffle } from '../../src/base/math/random.ts'
import { desk } from '../../src/engine/environments/desk/desk.ts'
import { type Player, playWorld } from '../../src/engine/environments/play.ts'
import { replyOf } from '../../src/engine/environments/reply.ts'
import type { User } from '../../src/engine/environments/users/user.ts'
import { conversationRow } from '../../src/learn/model/supervised.ts'
import type { DomainName } from '../../src/worlds/tau/domain.ts'
import { tauEnvironment } from '../../src/worlds/tau/environment.ts'
import { loadTau } from '../../src/worlds/tau/load.ts'
import { STOP, type TauTaskData } from '../../src/worlds/tau/task.ts'
import { novicePlayer } from '../../test/desk-players.ts'

/** Added to an id that is to be learned. */
const learned = 1 << 30

interface Show {
  readonly environment: Environment<never>
  readonly player: Player<never>
  readonly turns: number
}

/** A user who says everything at once, and has nothing to add. */
const frank: User = {
  open: async instruction => instruction,
  answer: async () => STOP,
  recall: () => {},
  fork: () => frank,
}

/** The actions that a task of tau-bench names, one by one, and at the end what the user should be told. */
async function tauShow(name: DomainName, root: string, seed: number): Promise<Show> {
  const domain = await loadTau({ root, domain: name })
  const split = 'train' in domain.tasks ? 'train' : 'test'
  const own = tauEnvironment({ domain, user: () => frank, split })
  const player: Player<TauTaskData> = ({ task: { data }, turn }) => {
    const task = domain.tasks[data.split]?.[data.index]
    const action = task?.actions[turn]
    if (action) return replyOf('', { tool: action.name, input: toJavaScript(action.kwargs) })
    return replyOf(['Done.', ...(task?.outputs ?? [])].join(' '))
  }
  const size = domain.tasks[split]?.length ?? 0
  const tasks = own.makeTasks?.({ count: size, seed, split }) ?? []
  const makeTasks: Environment<TauTaskData>['makeTasks'] = ({ count }) =>
    shuffle(tasks, random(seedOf(seed, 'order'))).slice(0, count)
  return { environment: { ...own, makeTasks } as never, player: player as never, turns: 20 }
}

const [model, out, kind = 'desk', count = '12000', seed = '6', root] = process.argv.slice(2)
if (model === undefined || out === undefined || !['desk', 'retail', 'airline'].includes(kind)) {
  console.error('Usage: demonstrations.ts MODEL_DIR OUT.bin desk|retail|airline COUNT SEED [ROOT]')
  process.exit(2)
}
const show: Show =
  kind === 'desk'
    ? { environment: desk() as never, player: novicePlayer(Number(seed)) as never, turns: 16 }
    : await tauShow(kind as DomainName, root ?? '', Number(seed))
const renderer = createRenderer(await readModelFolder(model), { clock: () => new Date(0) })
const { signal } = new AbortController()
const lanes = makeLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
const file = createWriteStream(out)
for (const task of show.environment.makeTasks!({ count: Number(count), seed: Number(seed) })) {
  await using world = await show.environment.open(task, { signal, seed: Number(seed), lanes })
  const { messages } = await playWorld(world, task, { ...show, signal })
  const { ids, mask } = conversationRow(renderer, { messages, tools: world.tools })
  const row = ids.map((id, place) => (mask[place] === 1 ? id + learned : id))
  file.write(Buffer.from(Int32Array.of(row.length, ...row).buffer))
}
file.end()
await finished(file)
