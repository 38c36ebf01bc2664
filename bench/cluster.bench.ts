import '../src/offers.ts'
import { connectionOf } from '../src/doors/cluster/address.ts'
import { openDatabase } from '../src/doors/cluster/database.ts'
import { migrate } from '../src/doors/cluster/schema.ts'
import { openTestServer } from '../test/end-to-end/cluster.ts'
import { byBytes, type Carried } from './cluster/bytes.ts'
import { type Idleness, whileIdle } from './cluster/idle.ts'
import { type Passage, throughBoss, throughTables } from './cluster/passage.ts'
import { type Scaling, scale } from './cluster/scaling.ts'

/** Ways through the queue, then runs on 1, 2 and 4 workers beside one process. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  await using server = await openTestServer()
  await using database = await openDatabase(connectionOf(server.url))
  await migrate(database)
  const tables = await throughTables(database, server)
  if (!json) console.log(`plain tables  ${show(tables)}`)
  const boss = await throughBoss(server)
  if (!json) console.log(`pg-boss 10    ${show(boss)}`)
  const idle = [await whileIdle(server, 4), await whileIdle(server, 80)] as const
  if (!json) for (const each of idle) console.log(showIdle(each))
  const bytes = await byBytes(server)
  if (!json) for (const each of bytes) console.log(showBytes(each))
  const scaling = await scale(server)
  if (!json) showScaling(scaling)
  const expectations = [...expectationsOf(tables, boss, scaling), ...awakeFor(idle)]
  for (const { what, isMet } of expectations) {
    if (!json) console.log(`${isMet ? 'ok    ' : 'FAILED'}  ${what}`)
    if (!isMet) process.exitCode = 1
  }
  return { tables, boss, idle, bytes, ...scaling, expectations }
}

/** What must hold on any machine that has a core for each of database, coordinator and policy. */
function expectationsOf(tables: Passage, boss: Passage, { clustered, overhead }: Scaling) {
  const [one, two, four] = clustered.map(({ perSecond }) => perSecond) as [number, number, number]
  return [
    {
      what: 'an attempt costs less than half of pg-boss',
      isMet: tables.batched < boss.batched / 2,
    },
    { what: 'an idle worker has new work within 100 ms', isMet: tables.wakes < 100 },
    { what: '2 workers make at least 1.7 times as many as 1', isMet: two > 1.7 * one },
    { what: '4 workers make at least 2.8 times as many as 1', isMet: four > 2.8 * one },
    { what: 'a place is taken at most 30 ms longer than in one process', isMet: overhead < 30 },
  ]
}

/** However many are idle, only as many are woken as there is something for. */
function awakeFor(idle: readonly Idleness[]) {
  const most = Math.max(...idle.map(({ claims }) => claims))
  return [{ what: 'an attempt is claimed by whom it wakes: twice at most', isMet: most <= 2 }]
}

const showBytes = ({ size, segments, perSecond, coordinator, database }: Carried): string =>
  `${size} kB a rollout ${segments ? 'in segments' : 'through the table'}, warm  ${perSecond.toFixed(0)} rollouts/s; ` +
  `coordinator ${coordinator?.toFixed(2) ?? '?'} ms of a core for each, database ${database?.toFixed(2) ?? '?'}`

const showIdle = ({ workers, claims, cpu }: Idleness): string =>
  `${workers} idle workers  ${claims.toFixed(1)} claims for an attempt that comes alone` +
  `${cpu === null ? '' : `, ${cpu.toFixed(1)} ms of a core of the database`}`

const show = ({ alone, batched, cpu, wakes }: Passage): string =>
  `${alone.toFixed(2)} ms per attempt, ${batched.toFixed(2)} in batches of 16` +
  `${cpu === null ? '' : ` (${cpu.toFixed(2)} ms of a core of the database)`}; ` +
  `an idle worker has it after ${wakes.toFixed(0)} ms`

function showScaling({ width, alone, clustered, overhead }: Scaling): void {
  for (const { workers, seconds, perSecond, coordinator } of [alone, ...clustered]) {
    const who = workers === 0 ? `one process, ${width} at one time` : `${workers} workers`
    const cost =
      coordinator === null ? '' : `, ${coordinator.toFixed(1)} ms of a core in it for each`
    console.log(`${who}  ${seconds.toFixed(1)} s, ${perSecond.toFixed(1)} rollouts/s${cost}`)
  }
  console.log(`overhead of the cluster per rollout  ${overhead.toFixed(1)} ms (wall, 1 worker)`)
}
