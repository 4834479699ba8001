#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The selectors in docs/kubevirt.md are what KubeVirt makes of the names that the module gives its
# types: a blank is an underscore, ends are trimmed; a resource name is one that Kubernetes takes.
# limit: 30
set -euo pipefail
python3 - "$OCTAVO_TREE" <<'PYTHON'
import re, sys
root = sys.argv[1]
source = open(f"{root}/mdev/type.c").read()
names = sorted(set(re.findall(r'"(Octavo 1/[0-9])"', source)))
if not names:
    # made up of a format and the number of a share
    assert re.search(r'"Octavo 1/%[ud]', source), "mdev/type.c: no name of a type is found"
    names = [f"Octavo 1/{share}" for share in (2, 4, 8)]
text = open(f"{root}/docs/kubevirt.md").read()
rows = re.findall(r"^\| (1/\d) \| `([^`]*)` \| `([^`]*)` \| `([^`]*)` \|$", text, re.M)
assert [row[1] for row in rows] == names, (rows, names)
resource = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
for size, name, compared, name_of_resource in rows:
    assert name == f"Octavo {size}", name
    assert compared == name.replace(" ", "_").strip(), (compared, name)
    assert resource.fullmatch(name_of_resource), name_of_resource
    pair = f'      - mdevNameSelector: "{name}"\n        resourceName: "{name_of_resource}"\n'
    assert pair in text, f"{name} is not in the example"
PYTHON
echo "ok: KubeVirt's selectors"
