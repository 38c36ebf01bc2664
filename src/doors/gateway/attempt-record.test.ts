import { appendFile, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { bearer, hello, openSaying } from '../../../test/open-gateways.ts'
import type { TaskId, TreeId } from '../../base/core/ids.ts'
import { openAttemptRecord } from './attempt-record.ts'

let folder = ''

/** The record in the folder, of a run whose journal holds these trees. */
const openRecord = (isLoose: (tree: TreeId) => boolean) =>
  openAttemptRecord(folder, { isLoose, isGathered: () => false, isKnown: () => false })

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'espalier-names-'))
})

describe('names of attempts', () => {
  it('are taken after a kill too, as long as the journal has their attempts', async () => {
    const first = await openSaying(['yes', 'no'], {
      parts: { group: 3 },
      record: await openRecord(() => false),
    })
    for (const id of ['closed', 'open']) {
      const { body } = await first.send('/attempts', { task: 't', id })
      await first.send('/v1/chat/completions', hello, bearer(String(body.token)))
      if (id === 'closed') await first.send(`/attempts/${id}/close`, { reward: 1 })
    }
    const written = new Set(first.trees.map(({ id }) => id))
    const again = await openSaying([], {
      parts: { group: 3 },
      record: await openRecord(tree => written.has(tree)),
    })
    const statusOf = async (id: string) => (await again.send('/attempts', { task: 't', id })).status
    expect([await statusOf('closed'), await statusOf('open')]).toEqual([409, 201])
  })

  const named = (id: string) => ({ id, isNamed: true, task: { id: 't' as TaskId, data: {} } })

  it('are free where the tree was never written, or was made again under another name', async () => {
    const record = await openRecord(() => false)
    await record.keep(named('lost'), 't/0' as TreeId)
    await record.keep(named('other'), 't/0' as TreeId)
    await record.keep(named('unwritten'), 't/1' as TreeId)
    await appendFile(join(folder, 'names.jsonl'), '\n{"name":"to')
    const again = await openRecord(tree => tree === 't/0')
    const names = ['lost', 'other', 'unwritten']
    expect(names.filter(name => again.has(name))).toEqual(['other'])
    await again.keep(named('later'), 't/0' as TreeId)
    expect((await openRecord(() => true)).has('later')).toBe(true)
  })

  it('are free again when a client deleted the attempt, as rLLM does before it names another so', async () => {
    const record = await openRecord(() => true)
    const { send, url } = await openSaying(['yes', 'no'], { record })
    for (const _ of [1, 2]) {
      expect((await send('/rllm/sessions', { session_id: 't:0' })).status).toBe(200)
      expect((await send('/rllm/sessions/t:0/v1/chat/completions', hello)).status).toBe(200)
      await fetch(`${url}/rllm/sessions/t:0`, { method: 'DELETE' })
    }
    expect((await openRecord(() => true)).has('t:0')).toBe(false)
  })
})

it('[P1] scores attempts that a killed gateway had closed by the data that was sent for them', async () => {
  const reward = {
    right: ({ task, answer }: { task: { data: unknown }; answer: string }) =>
      Number(answer === (task.data as { right?: string }).right),
  }
  const parts = { group: 2, reward }
  const opened = { task: 't', data: { right: 'yes' } }
  const first = await openSaying(['yes'], { parts, record: await openRecord(() => false) })
  const { body } = await first.send('/attempts', opened)
  await first.send('/v1/chat/completions', hello, bearer(String(body.token)))
  const closed = await first.send(`/attempts/${body.id}/close`, {})
  expect(closed.body.reward).toBe(1)

  const record = await openRecord(() => true)
  const again = await openSaying([], { parts, record })
  await again.gateway.attempts.adopt(first.trees, tree => record.taskOf(tree)!)
  await again.send('/groups/t/close', {})
  expect(again.groups[0]!.members.map(({ reward: { total } }) => total)).toEqual([1])
})

it('H4: keeps no secret of the gateway that comes with a task', async () => {
  const secrets = { read: 'damsons-to-read', model: 'damsons-to-ask' }
  await openSaying([], { secrets })
  const record = await openRecord(() => true)
  const task = { id: 't' as TaskId, data: { notes: Object.values(secrets) } }
  await record.keep({ id: 'a', isNamed: true, task }, 't/0' as TreeId)
  expect(await readFile(join(folder, 'names.jsonl'), 'utf8')).not.toContain('damsons')
})
