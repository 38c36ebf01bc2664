import { describe, expect, it } from 'vitest'
import { chainGroup, toExport } from '../../../test/export-runs.ts'
import { writeTo } from '../../../test/memory-output.ts'
import { layers, routed, top, withExperts } from '../../../test/with-experts.ts'
import type { Group } from '../../base/core/group.ts'
import { refuseExperts, type WrittenExperts, withoutExperts } from './experts.ts'
import { formatNamed } from './formats/registry.ts'

/** Chains of two turns before a server that tells experts. */
function routedGroup(parts: Parameters<typeof chainGroup>[1] = {}): Group {
  const group = chainGroup([1, 0], parts)
  const members = group.members.map(member => ({ ...member, tree: withExperts(member.tree, 64) }))
  return { ...group, members }
}

async function rowsOf(format: string, group: Group): Promise<readonly Record<string, unknown>[]> {
  const { bytes } = await writeTo(formatNamed(format), [toExport(group)])
  const lines = Buffer.from(bytes).toString().trim().split('\n')
  return lines.map(line => JSON.parse(line) as Record<string, unknown>)
}

const numbersOf = (written: unknown): readonly number[] => [
  ...Buffer.from((written as WrittenExperts).data, 'base64'),
]

describe('routed experts in exports', () => {
  it.each([
    ['slime', 'rollout_routed_experts', -1],
    ['verl', 'routed_experts', 0],
    ['skyrl', 'rollout_expert_indices', 0],
    ['jsonl', 'experts', 0],
  ])('%s carries them as %s, token by token', async (format, name, fewer) => {
    const [neutral] = await rowsOf('jsonl', routedGroup())
    const ids = Int32Array.from(neutral!.ids as number[])
    const [row] = await rowsOf(format, routedGroup())
    const written = row![name] as WrittenExperts
    expect(written.shape).toEqual([ids.length + fewer, layers, top])
    const last = (neutral!.mask as number[]).lastIndexOf(1)
    const told = Array.from({ length: last }, (_, token) => routed(ids.subarray(0, token + 1), 64))
    expect(numbersOf(written).slice(0, last * layers * top)).toEqual(told.flat())
  })

  it('what cannot replay them refuses, and says how to go on', async () => {
    for (const format of ['trl', 'rllm', 'tinker', 'art', 'verifiers']) {
      const refused = () => refuseExperts(formatNamed(format), routedGroup())
      expect(refused).toThrow('--without experts')
      expect(() => refuseExperts(formatNamed(format), withoutExperts(routedGroup()))).not.toThrow()
    }
    const steps = rowsOf('skyrl', routedGroup({ rewritten: [0, 1] }))
    await expect(steps).rejects.toThrow('one')
  })

  it('a row whose past is not told is refused', async () => {
    const group = routedGroup()
    const members = group.members.map(member => ({
      ...member,
      tree: {
        ...member.tree,
        nodes: member.tree.nodes.map((node, index, all) =>
          index === all.findIndex(({ segment }) => segment.experts)
            ? { ...node, segment: { ...node.segment, experts: undefined } }
            : node,
        ),
      } as typeof member.tree,
    }))
    await expect(rowsOf('slime', { ...group, members })).rejects.toThrow('looked back on')
  })
})
