// Our driver against what real servers of Tinker's API answered: test/fixtures/servers, recorded by
// `npm run trainers -- --tuft URL --twinkle URL --record FILE` from TuFT 0.2.2 and Twinkle 0.5.1, each
// with the models without weights that it brings along for tests.
import { expect, it } from 'vitest'
import { driveTinker, type Promised } from '../../../../test/servers/drive-tinker.ts'
import { readRecorded, serveRecorded } from '../../../../test/servers/recorded.ts'

it.each(['tuft', 'twinkle'] as const)(
  'asks %s what it was asked, and takes its answers',
  async kind => {
    await using server = await serveRecorded(readRecorded(kind))
    const told: Promised[] = []
    for await (const promised of driveTinker(server.url, { kind, key: 'k' })) told.push(promised)
    expect(told.filter(({ holds }) => !holds)).toEqual([])
    expect(told).toHaveLength(8)
    expect(server.unknown).toEqual([])
  },
)
