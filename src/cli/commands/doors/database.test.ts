import { mkdtempSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { runCommand } from '../../../../test/command-line.ts'
import { connectionOf } from '../../../doors/cluster/address.ts'
import { openDatabase } from '../../../doors/cluster/database.ts'

it('keeps a server that answers whoever has its password, and goes on with its data', async () => {
  // PostgreSQL does not run as root; the user that it runs as then must reach the folder.
  const folder = mkdtempSync('/tmp/espalier-database-')
  const ask = async (question: string): Promise<unknown> => {
    const stop = new AbortController()
    let answer: unknown
    const onLine = async (line: string): Promise<void> => {
      const url = new URL(JSON.parse(line).cluster)
      url.password = readFileSync(`${folder}/password`, 'utf8')
      const asking = { tell: () => {}, signal: stop.signal, connections: 1 }
      await using database = await openDatabase(connectionOf(url), asking)
      answer = await database.query(question, [])
      stop.abort()
    }
    const words = ['database', '--folder', folder, '--json']
    const ran = await runCommand(words, { signal: stop.signal, onLine })
    expect([ran.code, ran.stderr]).toEqual([0, ''])
    return answer
  }
  await ask('create table kept as select 7 as number')
  expect(await ask('select number from kept')).toEqual([{ number: 7 }])
})
