import { describe, expect, it } from 'vitest'
import { runAttack } from './attack.ts'
import { attacks } from './attacks.ts'

const thousands = process.env.ESPALIER_SOAK ? 20 : 1

describe('a campaign', () => {
  it('is made of shares that add up', () => {
    expect(attacks.reduce((sum, { share }) => sum + share, 0)).toBe(1000)
  })

  it.each(attacks.map(attack => [attack.name, attack] as const))(
    'holds against %s',
    async (_, attack) => {
      const { broken } = await runAttack(attack, { seed: 1, cases: attack.share * thousands })
      expect(broken).toEqual([])
    },
  )
})
