import { expect, it } from 'vitest'
import { keepSecret } from '../../base/core/process/secrets.ts'
import { withDefaults } from '../../run/settings/settings.ts'
import { openCluster } from './open-cluster.ts'

const open = (settings: object) => () => openCluster('local:1', { config: withDefaults(settings) })

it('refuses what workers could not do, and settings that hold a secret, before anything is started', () => {
  expect(open({ policy: ['sglang:http://localhost'] })).not.toThrow()
  expect(open({ record: 'samples.jsonl' })).toThrow('--record: samples are drawn by the workers')
  keepSecret('plums-are-a-secret')
  expect(open({ policy: ['openai:http://localhost?key=plums-are-a-secret'] })).toThrow(
    'a setting holds a secret, and settings are kept in the database',
  )
})
