import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dumps } from '@espalier/text/python'
import { describe, expect, it } from 'vitest'
import type { TauDomain } from './domain.ts'
import { loadTau, packTau } from './load.ts'
import { fillTemplate, readAssignment, readTemplates } from './python-source.ts'
import { taskToPython } from './results.ts'
import type { TauTask } from './task.ts'
import { makeTauWorld } from './world.ts'

const root = 'test/fixtures/tau-checkout'

const essence = (domain: TauDomain): unknown => ({
  ...domain,
  tables: makeTauWorld(domain, domain.tasks.test?.[0] as TauTask).hash(),
  tasks: Object.entries(domain.tasks).map(([split, tasks]) => [
    split,
    dumps(tasks.map(taskToPython)),
  ]),
})

describe('loading', () => {
  it('reads tables, tools, tasks and prompts out of a checkout', async () => {
    const domain = await loadTau({ root, domain: 'retail' })
    expect(domain.tools.map(tool => tool.function.name)).toHaveLength(16)
    expect(domain.tools.find(tool => tool.function.name === 'think')?.function.description).toBe(
      'Room to think.',
    )
    expect(domain.tasks.test?.[1]).toMatchObject({ userId: 'ben_fern_0002', outputs: ['18.1'] })
    expect(domain.tasks.test?.[1]?.instruction).toContain('by mistake.\nYou are')
    expect(domain.rules).toEqual(['Be kind.', 'Be brief.'])
    expect(domain.fewShots).toHaveLength(6)
    expect(domain.unfamiliar).toContain('tau_bench/envs/retail/data/orders.json')
  })

  it('gives the same domain from a packed folder', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tau-pack-'))
    try {
      expect(await packTau(root, folder)).toEqual(['retail', 'airline'])
      for (const domain of ['retail', 'airline'] as const) {
        const packed = await loadTau({ root: folder, domain })
        expect(essence(packed)).toEqual(essence(await loadTau({ root, domain })))
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('gives what is loaded already, until a file is another one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tau-pack-'))
    try {
      await packTau(root, folder)
      const options = { root: folder, domain: 'retail' } as const
      const first = await loadTau(options)
      expect(await loadTau(options)).toBe(first)
      const file = join(folder, 'retail.json')
      await writeFile(file, (await readFile(file, 'utf8')).replace('Be kind.', 'Be very kind.'))
      expect((await loadTau(options)).rules[0]).toBe('Be very kind.')
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('says what it looked for where there is nothing', async () => {
    await expect(loadTau({ root: 'test/fixtures', domain: 'retail' })).rejects.toThrow(
      'neither tau_bench/envs/retail of a checkout nor retail.json',
    )
    await expect(packTau('test/fixtures', 'nowhere')).rejects.toThrow('no tau_bench/envs')
  })
})

describe('Python sources', () => {
  it('are read as constructions and literals', () => {
    const source = 'import x\nLIST = [  # all\n  Task(a="b" "c", n=[1, 2.0],), Task()]\n'
    const [first, second] = readAssignment(source, 'LIST')
    expect(first?.name).toBe('Task')
    expect(first?.fields.get('a')).toBe('bc')
    expect(second?.fields.size).toBe(0)
  })

  it.each([
    ['LIST = [Task(a=open("x"))]', /"open" is not a literal/],
    ['LIST = [Task(a=1) + 1]', /Expected a call such as Task\(…\), found an expression \(binary\)/],
    ['LIST = Task()', /Expected a list in LIST, found Task\(…\)/],
    ['OTHER = []', /assigns nothing to LIST/],
  ])('%s is refused', (source, problem) => {
    expect(() => readAssignment(source, 'LIST')).toThrow(problem)
  })

  it('keep the placeholders of their prompts', () => {
    const [template = ''] = readTemplates('x = f"""a {b} {{c}} "d" """')
    expect(fillTemplate(template, { b: '{{x}}' })).toBe('a {{x}} {c} "d" ')
    expect(() => fillTemplate('{missing}', { b: '' })).toThrow('{missing}. Known: b')
  })
})
