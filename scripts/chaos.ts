// Disturbs runs: `npm run chaos -- [--kills N] [--seed N] [--cluster [--rollouts N]]`. Kills at random moments, faults of the
// server, a full disk; each run is resumed to its end and compared with an undisturbed one.
import { parseArgs } from 'node:util'
import { openTrial, rollKilled } from '../test/end-to-end/chaos.ts'
import { espalier, start } from '../test/end-to-end/cli.ts'
import type { Fault } from '../test/servers/serving.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    cluster: { type: 'boolean', default: false },
    rollouts: { type: 'string', default: '2000' },
  },
})
const wanted = Number(values.kills)
const seed = Number(values.seed)
let failures = 0

function check(isGood: boolean, line: string): void {
  if (!isGood) failures++
  console.log(`${isGood ? 'ok    ' : 'FAILED'}  ${line}`)
}

const strategies = [
  { words: [], width: 1 },
  { words: ['--strategy', 'tree', '--branch', 'fixed', '--leaves', '4'], width: 4 },
  { words: ['--strategy', 'step'], width: 1 },
]

async function kill(): Promise<void> {
  let kills = 0
  for (let round = 0; kills < wanted; round++) {
    const { words, width } = strategies[round % strategies.length]!
    const trial = { seed: seed + round, tasks: 30, group: 4, latency: 20, words }
    await using plain = await openTrial(trial)
    await espalier(...plain.words)
    await using killed = await openTrial(trial)
    const result = await rollKilled(killed, {
      seed: seed + round,
      kills: wanted - kills,
      apart: 30,
    })
    kills += result.kills
    const rows = await plain.rows()
    const isSame = rows === (await killed.rows())
    const again = killed.generations() - plain.generations()
    check(
      isSame && again <= result.kills * 8 * width,
      `round ${round} ${words[1] ?? 'chain'}: ${result.kills} kills, ${rows.split('\n').length - 1} rows equal to the undisturbed run's, ` +
        `${again} of ${plain.generations()} samples drawn again`,
    )
  }
  check(kills >= wanted, `${kills} kills in all`)
}

async function faults(): Promise<void> {
  const kinds: readonly Fault[] = ['reset', 'unavailable', 'hang', 'truncated', 'nan', 'html']
  const fault = (index: number) => (index % 5 === 2 ? kinds[((index / 5) % 6) | 0] : undefined)
  const trial = {
    seed,
    tasks: 60,
    group: 4,
    latency: 5,
    fault,
    words: ['--deadline', '1', '--json'],
  }
  await using faulty = await openTrial(trial)
  const { code, stdout } = await espalier(...faulty.words)
  const { trees, outcomes } = JSON.parse(stdout.trim().split('\n').at(-1)!)
  const { completed = 0, 'failed in policy': failed = 0 } = outcomes
  check(
    code === 0 && trees === 240 && completed + failed === 240 && failed > 0,
    `faults at every fifth answer: ${trees} attempts, ${completed} completed, ${failed} failed in policy, none elsewhere`,
  )
}

async function fullDisk(): Promise<void> {
  const trial = { seed, tasks: 30, group: 4, latency: 5 }
  await using plain = await openTrial(trial)
  await espalier(...plain.words)
  await using full = await openTrial(trial)
  let stops = 0
  for (let largestFile = 48; largestFile < 400; largestFile += 96) {
    const words = stops === 0 ? full.words : ['resume', full.run]
    const { code, stderr } = await start(words, { largestFile }).finished
    if (code === 1 && stderr.includes('cannot be written: the file-size limit is reached')) stops++
  }
  const last = await espalier('resume', full.run)
  check(
    last.code === 0 && stops > 1 && (await full.rows()) === (await plain.rows()),
    `stopped ${stops} times by a full disk with a clear error, then finished with the same rows`,
  )
}

/** Four workers, killed in turn with their coordinator, over a database that restarts. */
async function cluster(): Promise<void> {
  const { disturbances, openShop, openTestServer, rollDisturbed, rollWords, rowsOf } = await import(
    '../test/end-to-end/cluster.ts'
  )
  const group = 8
  const tasks = Math.ceil(Number(values.rollouts) / group)
  const folder = openShop(tasks)
  await start(rollWords(group, 'one'), { folder }).finished
  await using server = await openTestServer()
  const round = ['worker', 'worker', 'coordinator', 'worker', 'database'] as const
  const kinds = Array.from({ length: Math.min(wanted, 20) }, (_, index) => round[index % 5]!)
  const plan = disturbances(seed, tasks, kinds)
  const words = rollWords(group, 'many')
  const started = performance.now()
  const many = await rollDisturbed(server, { folder, words, run: 'many', workers: 4, plan })
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  const isSame = (await rowsOf(folder, 'one')) === (await rowsOf(folder, 'many'))
  check(
    many.code === 0 && isSame && many.kills === kinds.length,
    `${tasks * group} rollouts on 4 workers in ${seconds} s: ${many.kills} kills of workers, coordinator and database, rows ${isSame ? 'equal to' : 'other than'} one process's`,
  )
  if (many.code !== 0) console.log(many.stderr)
}

if (values.cluster) await cluster()
else {
  await kill()
  await faults()
  await fullDisk()
}
console.log(failures === 0 ? 'nothing was lost, nothing was doubled' : `${failures} FAILED`)
process.exit(failures === 0 ? 0 : 1)
