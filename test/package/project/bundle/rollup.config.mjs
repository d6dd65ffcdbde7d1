import commonjs from '@rollup/plugin-commonjs'
import json from '@rollup/plugin-json'
import resolve from '@rollup/plugin-node-resolve'

export default {
  input: 'bundle/server.js',
  output: { file: 'out/rollup.cjs', format: 'cjs' },
  plugins: [
    resolve({ preferBuiltins: true, exportConditions: ['node'] }),
    commonjs({ ignore: ['pg-native'] }),
    json(),
  ],
  // pg refers to itself in circles, and to `this` at its top.
  onwarn(warning, warn) {
    if (!['CIRCULAR_DEPENDENCY', 'THIS_IS_UNDEFINED'].includes(warning.code)) warn(warning)
  },
}
