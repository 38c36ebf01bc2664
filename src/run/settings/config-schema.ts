import { z } from 'zod'
import type { Setting } from './setting.ts'
import { settings } from './settings.ts'

/** The JSON schema of a config file, for editors: every setting, and profiles that change some. */
export function configSchema(): object {
  const properties = Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [name, propertyOf(setting)]),
  )
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Espalier config',
    type: 'object',
    properties: {
      $schema: { type: 'string' },
      ...properties,
      profiles: {
        description: 'Settings that a profile changes, by its name',
        type: 'object',
        additionalProperties: { $ref: '#/$defs/settings' },
      },
    },
    additionalProperties: false,
    $defs: { settings: { type: 'object', properties, additionalProperties: false } },
  }
}

function propertyOf({ schema, help, default: value }: Setting): object {
  const { $schema: _schema, ...property } = z.toJSONSchema(schema, { io: 'input' })
  return { ...property, description: help, ...(value !== undefined && { default: value }) }
}
