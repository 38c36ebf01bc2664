// Demonstrations of the desk as rows of tokens, for teaching a model on a GPU:
// `npx tsx scripts/gpu/demonstrations.ts MODEL_DIR OUT.bin [COUNT] [SEED]`.
// OUT.bin holds, for every row, its length as int32 and then its ids, those to be learned with 2^30 added.
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { readModelFolder } from '../../src/chat/model-folder.ts'
import { createRenderer } from '../../src/chat/renderer.ts'
import { openLanes } from '../../src/core/lane.ts'
import { desk } from '../../src/environments/desk/desk.ts'
import { novicePlayer } from '../../src/environments/desk/players.ts'
import { playWorld } from '../../src/environments/play.ts'
import { conversationRow } from '../../src/model/supervised.ts'

const [model, out, count = '12000', seed = '6'] = process.argv.slice(2)
if (model === undefined || out === undefined) {
  console.error('Usage: demonstrations.ts MODEL_DIR OUT.bin [COUNT] [SEED]')
  process.exit(2)
}

/** Added to an id that is to be learned. */
const learned = 1 << 30

const environment = desk()
const renderer = createRenderer(await readModelFolder(model), { clock: () => new Date(0) })
const { signal } = new AbortController()
const lanes = openLanes({ policy: 1, tools: 1, environment: 1, reward: 1 })
const player = novicePlayer(Number(seed))
const file = createWriteStream(out)
for (const task of environment.makeTasks!({ count: Number(count), seed: Number(seed) })) {
  await using world = await environment.open(task, { signal, seed: Number(seed), lanes })
  const { messages } = await playWorld(world, task, { player, turns: 16, signal })
  const { ids, mask } = conversationRow(renderer, { messages, tools: world.tools })
  const row = ids.map((id, place) => (mask[place] === 1 ? id + learned : id))
  file.write(Buffer.from(Int32Array.of(row.length, ...row).buffer))
}
file.end()
await finished(file)
