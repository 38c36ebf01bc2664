import { appendFile, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { bearer, hello, openSaying } from '../../test/open-gateways.ts'
import type { TreeId } from '../core/ids.ts'
import { openNameRecord } from './name-record.ts'

describe('names of attempts', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'espalier-names-'))
  })

  it('are taken after a kill too, as long as the journal has their attempts', async () => {
    const first = await openSaying(['yes', 'no'], {
      parts: { group: 3 },
      names: await openNameRecord(folder, () => false),
    })
    for (const id of ['closed', 'open']) {
      const { body } = await first.send('/attempts', { task: 't', id })
      await first.send('/v1/chat/completions', hello, bearer(String(body.token)))
      if (id === 'closed') await first.send(`/attempts/${id}/close`, { reward: 1 })
    }
    const written = new Set(first.trees.map(({ id }) => id))
    const again = await openSaying([], {
      parts: { group: 3 },
      names: await openNameRecord(folder, tree => written.has(tree)),
    })
    const statusOf = async (id: string) => (await again.send('/attempts', { task: 't', id })).status
    expect([await statusOf('closed'), await statusOf('open')]).toEqual([409, 201])
  })

  it('are free where the tree was never written, or was made again under another name', async () => {
    const record = await openNameRecord(folder, () => false)
    await record.take('lost', 't/0' as TreeId)
    await record.take('other', 't/0' as TreeId)
    await record.take('unwritten', 't/1' as TreeId)
    await appendFile(join(folder, 'names.jsonl'), '\n{"name":"to')
    const again = await openNameRecord(folder, tree => tree === 't/0')
    const names = ['lost', 'other', 'unwritten']
    expect(names.filter(name => again.has(name))).toEqual(['other'])
    await again.take('later', 't/0' as TreeId)
    expect((await openNameRecord(folder, () => true)).has('later')).toBe(true)
  })

  it('are free again when a client deleted the attempt, as rLLM does before it names another so', async () => {
    const names = await openNameRecord(folder, () => true)
    const { send, url } = await openSaying(['yes', 'no'], { names })
    for (const _ of [1, 2]) {
      expect((await send('/rllm/sessions', { session_id: 't:0' })).status).toBe(200)
      expect((await send('/rllm/sessions/t:0/v1/chat/completions', hello)).status).toBe(200)
      await fetch(`${url}/rllm/sessions/t:0`, { method: 'DELETE' })
    }
    expect((await openNameRecord(folder, () => true)).has('t:0')).toBe(false)
  })
})
