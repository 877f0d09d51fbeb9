# SPDX-License-Identifier: MIT
"""A machine with AMD GPUs that are made up: a sysfs of its own, for --sysfs-root."""

import os
import shutil


class Amd:
    def __init__(self, folder):
        self.root = f'{folder}/sysfs'
        self.count = 0
        self.arguments = ('--sysfs-root', self.root)
        self.node(0, 'cpu_cores_count 64\n')
        os.makedirs(f'{self.root}/class/drm')

    def put(self, path, text):
        whole = f'{self.root}/{path}'
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(f'{whole}.new', 'w', encoding='ascii') as out:
            out.write(text)
        os.rename(f'{whole}.new', whole)

    def node(self, gpu_id, properties):
        folder = f'class/kfd/kfd/topology/nodes/{self.count}'
        self.count += 1
        self.put(f'{folder}/gpu_id', f'{gpu_id}\n')
        self.put(f'{folder}/properties', properties)

    def add(self, bus, unique_id, memory_gib=64, used_gib=0, busy=0):
        """A GPU; its folder below the root."""
        number, pci = self.count - 1, f'0000:{bus:02x}:00.0'
        folder = f'devices/{pci}'
        for name, text in {'vendor': '0x1002', 'device': '0x740f', 'unique_id': f'{unique_id:016x}',
                           'product_name': 'AMD Stand-in', 'gpu_busy_percent': busy,
                           'mem_info_vram_total': memory_gib << 30, 'mem_info_vram_used': used_gib << 30,
                           f'drm/renderD{128 + number}/dev': f'226:{128 + number}',
                           'hwmon/hwmon1/temp1_input': 45000, 'hwmon/hwmon1/power1_average': 90000000}.items():
            self.put(f'{folder}/{name}', f'{text}\n')
        os.makedirs(f'{self.root}/class/drm/card{number}')
        os.symlink(f'../../../{folder}', f'{self.root}/class/drm/card{number}/device')
        self.node(1000 + number, f'simd_count 416\ndomain 0\nlocation_id {bus << 8}\n')
        return folder

    def remove(self, folder):
        shutil.rmtree(f'{self.root}/{folder}')
