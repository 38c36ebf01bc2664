import { connectionOf } from '../../src/doors/cluster/address.ts'
import { openDatabase } from '../../src/doors/cluster/database.ts'
import { Leasing } from '../../src/doors/cluster/leasing.ts'
import { makePlacing } from '../../src/doors/cluster/placing.ts'
import { openRunRow } from '../../src/doors/cluster/run-row.ts'
import { type TestServer, unopened } from '../../test/end-to-end/cluster.ts'
import { openCpu } from './cpu.ts'

/** What an attempt costs that comes alone while so many workers are idle. */
export interface Idleness {
  readonly workers: number
  /** Claims that were tried for each attempt. */
  readonly claims: number
  /** Milliseconds of a core of the database for each; null if unknown. */
  readonly cpu: number | null
}

const attempts = 100

/** Places attempts one by one before idle workers, each with a connection of its own that listens. */
export async function whileIdle(server: TestServer, count: number): Promise<Idleness> {
  await using database = await openDatabase(connectionOf(server.url))
  const run = `idle-${count}`
  const row = openRunRow(database, run, 'bench')
  await row.enter(unopened(run))
  const placing = makePlacing(database, run)
  let claims = 0
  let taken = (): void => {}
  const workers = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const own = await openDatabase(connectionOf(server.url), { connections: 1 })
      const leasing = new Leasing(own, `${run}-${index}`)
      await leasing.enter({ host: 'bench', concurrency: 4, lease: 600 })
      await leasing.attend(run)
      const claim = async (): Promise<boolean> => {
        claims++
        return (await leasing.claim(run, 4)).length > 0
      }
      const serve = async (): Promise<void> => {
        const isTaken = await claim()
        await leasing.want(run, 4)
        if ((await claim()) || isTaken) taken()
      }
      await own.listen(leasing.channel, () => void serve())
      await leasing.want(run, 4)
      return own
    }),
  )
  const cpu = openCpu(server)
  for (let each = 0; each < attempts; each++) {
    const wait = new Promise<void>(resolve => (taken = resolve))
    await placing.place([{ id: `${each}/0`, work: Buffer.alloc(500), digest: 'x' }])
    await wait
  }
  const spent = cpu.spent(attempts)
  await row.remove()
  await Promise.all(workers.map(each => each[Symbol.asyncDispose]()))
  return { workers: count, claims: claims / attempts, cpu: spent }
}
